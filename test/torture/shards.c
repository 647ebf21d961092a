#include "shards.h"
#include "free_port.h"
#include "netns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for a machine that is busy with all of them: none is to be taken for dead that is only slow. */
enum { NODE_TIMEOUT_MS = 2000, SLOTS = 16384, REPLY_BYTES = 16384, FIELDS = 8, FLAGS = 2, EPOCH = 6 };

static void prepare_server(struct shards *shards, unsigned server)
{
    const struct redis_server_options options = {
        .tcp = true,
        .guarded = true,
        .cluster_port = free_port(),
        .cluster_timeout_ms = NODE_TIMEOUT_MS,
        .serves_part = true,
        .address = shards->netns ? netns_address(shards->netns, shards->first_namespace + server) : NULL};

    redis_server_prepare(&shards->servers.servers[server], &options);
}

static void start_server(struct shards *shards, unsigned server)
{
    netns_enter(shards->netns, shards->first_namespace + server);
    redis_server_restart(&shards->servers.servers[server]);
    netns_leave(shards->netns);
}

static bool is_of_partition(const struct shards *shards, const char *slot)
{
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++)
        if (strcmp(slot, shards->slots[i]) == 0)
            return true;
    return false;
}

static void choose_anchor(struct shards *shards, unsigned shard)
{
    unsigned long slot;

    for (unsigned n = 0;; n++) {
        snprintf(shards->names[shard], sizeof shards->names[shard], "anchor-%u", n);
        redis_server_ask(&shards->servers.servers[0], shards->anchors[shard], sizeof shards->anchors[shard], "CLUSTER",
                         "KEYSLOT", shards->names[shard], NULL);
        slot = strtoul(shards->anchors[shard], NULL, 10);
        if (slot >= shard * SLOTS / SHARDS && slot < (shard + 1) * SLOTS / SHARDS &&
            !is_of_partition(shards, shards->anchors[shard]))
            return;
    }
}

static void learn_names(struct shards *shards)
{
    char name[16];

    for (unsigned i = 0; i < SHARDS_SERVERS; i++)
        redis_server_ask(&shards->servers.servers[i], shards->ids[i], sizeof shards->ids[i], "CLUSTER", "MYID", NULL);
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++) {
        snprintf(name, sizeof name, "{%u}", i);
        redis_server_ask(&shards->servers.servers[0], shards->slots[i], sizeof shards->slots[i], "CLUSTER", "KEYSLOT",
                         name, NULL);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        choose_anchor(shards, i);
}

static unsigned find_home(const struct shards *shards, unsigned partition)
{
    struct shard_view view;

    for (unsigned shard = 0; shard < SHARDS; shard++)
        if (shards_view(shards, shard, shards->slots[partition], &view) && view.has_slot)
            return shard;
    test_give_up("no server has partition %u", partition);
}

void shards_start(struct shards *shards, struct netns *netns, unsigned first_namespace)
{
    *shards = (struct shards){.servers = {.primaries = SHARDS, .count = SHARDS_SERVERS},
                              .netns = netns,
                              .first_namespace = first_namespace,
                              .disturbed = SHARDS_NONE,
                              .moving = SHARDS_NONE};
    pthread_mutex_init(&shards->move_lock, NULL);
    for (unsigned i = 0; i < SHARDS_SERVERS; i++)
        prepare_server(shards, i);
    cluster_servers_introduce(&shards->servers);
    for (unsigned i = 0; i < SHARDS_SERVERS; i++)
        start_server(shards, i);
    cluster_servers_started(&shards->servers);
    learn_names(shards);
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++)
        atomic_store(&shards->homes[i], find_home(shards, i));
}

void shards_stop(struct shards *shards)
{
    cluster_servers_stop(&shards->servers);
    pthread_mutex_destroy(&shards->move_lock);
}

/* "7", "7-9"; in brackets: what is being moved. */
static bool is_in_range(const char *word, unsigned long slot)
{
    char *end;
    unsigned long first = strtoul(word, &end, 10), last = *end == '-' ? strtoul(end + 1, NULL, 10) : first;

    return *word != '[' && first <= slot && slot <= last;
}

static void read_line(char *line, unsigned long slot, struct shard_view *ret_view)
{
    char *fields[FIELDS] = {0}, *word;

    for (size_t i = 0; i < FIELDS && line; i++)
        fields[i] = strsep(&line, " ");
    ret_view->is_primary = fields[FLAGS] && strstr(fields[FLAGS], "master");
    ret_view->epoch = fields[EPOCH] ? strtoll(fields[EPOCH], NULL, 10) : 0;
    ret_view->has_slot = false;
    while (line && (word = strsep(&line, " ")))
        ret_view->has_slot |= ret_view->is_primary && is_in_range(word, slot);
}

bool shards_view(const struct shards *shards, unsigned server, const char *slot, struct shard_view *ret_view)
{
    char reply[REPLY_BYTES], *rest = reply, *line;

    if (atomic_load(&shards->away[server]) || !redis_server_try(&shards->servers.servers[server], reply, sizeof reply,
                                                                2, (const char *const[]){"CLUSTER", "NODES"}))
        return false;
    while ((line = strsep(&rest, "\n"))) {
        if (!strstr(line, "myself"))
            continue;
        read_line(line, strtoul(slot, NULL, 10), ret_view);
        return true;
    }
    return false; /* it still loads */
}

bool shards_primary(const struct shards *shards, unsigned shard, unsigned *ret_server)
{
    long long epoch = -1;
    struct shard_view view;

    for (unsigned server = 0; server < SHARDS_SERVERS; server++) {
        if (!shards_view(shards, server, shards->anchors[shard], &view) || !view.has_slot || view.epoch <= epoch)
            continue;
        epoch = view.epoch;
        *ret_server = server;
    }
    return epoch >= 0;
}

bool shards_excuse(const struct shards *shards, unsigned partition)
{
    return atomic_load(&shards->moving) == (int)partition ||
           atomic_load(&shards->disturbed) == (int)atomic_load(&shards->homes[partition]);
}

/* What is done to one */

void shards_kill(struct shards *shards, unsigned server)
{
    atomic_store(&shards->away[server], true);
    redis_server_kill(&shards->servers.servers[server]);
}

void shards_restart(struct shards *shards, unsigned server)
{
    netns_enter(shards->netns, shards->first_namespace + server);
    redis_server_restart(&shards->servers.servers[server]);
    netns_leave(shards->netns);
    atomic_store(&shards->away[server], false);
}

void shards_keep(struct shards *shards, unsigned server)
{
    redis_server_keep(&shards->servers.servers[server]);
}

void shards_put_back(struct shards *shards, unsigned server)
{
    netns_enter(shards->netns, shards->first_namespace + server);
    redis_server_put_back(&shards->servers.servers[server]);
    netns_leave(shards->netns);
    atomic_store(&shards->away[server], false);
}

void shards_take_over(struct shards *shards, unsigned server)
{
    redis_server_tell(&shards->servers.servers[server], "CLUSTER", "FAILOVER", "TAKEOVER", NULL);
}

void shards_set_frozen(struct shards *shards, unsigned server, bool is_frozen)
{
    if (is_frozen) {
        atomic_store(&shards->away[server], true);
        redis_server_freeze(&shards->servers.servers[server]);
        return;
    }
    redis_server_thaw(&shards->servers.servers[server]);
    atomic_store(&shards->away[server], false);
}

void shards_set_cut(const struct shards *shards, unsigned server, unsigned nodes_reached, bool is_cut)
{
    unsigned own = shards->first_namespace + server;

    for (unsigned i = nodes_reached; i < shards->first_namespace + SHARDS_SERVERS; i++)
        if (i != own)
            netns_set_parted(shards->netns, own, i, is_cut);
}
