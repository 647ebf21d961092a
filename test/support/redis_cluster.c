#include "redis_cluster.h"
#include "deadline.h"
#include "free_port.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SLOTS = 16384, STEP_MS = 50, REPLY_BYTES = 16384, NODE_ID_BYTES = 41 };

static bool says(const struct redis_server *server, const char *wanted, const char *command, const char *argument)
{
    char reply[REPLY_BYTES];

    redis_server_ask(server, reply, sizeof reply, command, argument, NULL);
    return strstr(reply, wanted) != NULL;
}

static void name_node(const struct redis_server *server, char ret_id[64])
{
    redis_server_ask(server, ret_id, 64, "CLUSTER", "MYID", NULL);
}

/* All know all others, by their lasting names. */
static bool are_acquainted(const struct cluster_servers *cluster)
{
    char wanted[40];

    snprintf(wanted, sizeof wanted, "cluster_known_nodes:%u\r", cluster->count);
    for (unsigned i = 0; i < cluster->count; i++)
        if (!says(&cluster->servers[i], wanted, "CLUSTER", "INFO") ||
            says(&cluster->servers[i], "handshake", "CLUSTER", "NODES"))
            return false;
    return true;
}

static bool is_whole(const struct cluster_servers *cluster)
{
    bool has_replicas = cluster->count > cluster->primaries;

    for (unsigned i = 0; i < cluster->count; i++) {
        const struct redis_server *server = &cluster->servers[i];
        const char *role = says(server, "role:master", "INFO", "replication") ? "connected_slaves:1" : "link_status:up";

        if (!says(server, "cluster_state:ok", "CLUSTER", "INFO") || says(server, "fail", "CLUSTER", "NODES") ||
            (has_replicas && !says(server, role, "INFO", "replication")))
            return false;
    }
    return are_acquainted(cluster);
}

static bool wait_for(const struct cluster_servers *cluster, bool (*is_true)(const struct cluster_servers *cluster),
                     unsigned timeout_ms)
{
    struct deadline deadline = deadline_in(timeout_ms);

    while (!is_true(cluster)) {
        if (deadline_left_ms(deadline) == 0)
            return false;
        poll(NULL, 0, STEP_MS);
    }
    return true;
}

bool cluster_servers_wait_whole(const struct cluster_servers *cluster, unsigned timeout_ms)
{
    return wait_for(cluster, is_whole, timeout_ms);
}

static void print_url(const struct cluster_servers *cluster, bool is_tls, char ret_url[PROCESS_PATH_BYTES])
{
    size_t used = (size_t)snprintf(ret_url, PROCESS_PATH_BYTES, is_tls ? "rediss-cluster://" : "redis-cluster://");

    for (unsigned i = 0; i < cluster->count; i++) {
        const struct redis_server *server = &cluster->servers[i];

        used += (size_t)snprintf(ret_url + used, PROCESS_PATH_BYTES - used, "%s%s:%u", i > 0 ? "," : "",
                                 redis_server_address(server), is_tls ? server->options.tls_port : server->port);
    }
    if (used >= PROCESS_PATH_BYTES)
        abort();
}

/* Random, as Redis' own: a port may have been another cluster's. */
static void name_all(const struct cluster_servers *cluster, char ret_ids[CLUSTER_SERVERS_MAX][NODE_ID_BYTES])
{
    uint8_t bytes[NODE_ID_BYTES / 2];

    for (unsigned i = 0; i < cluster->count; i++) {
        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            abort();
        for (size_t k = 0; k < NODE_ID_BYTES / 2; k++)
            snprintf(ret_ids[i] + 2 * k, 3, "%02x", bytes[k]);
    }
}

/* The line for `other` in the file of `server`. Each primary has an epoch of its own: they need not sort that out. */
static void print_node(FILE *file, const struct cluster_servers *cluster, unsigned server, unsigned other,
                       char (*ids)[NODE_ID_BYTES])
{
    const struct redis_server *redis = &cluster->servers[other];
    const char *me = server == other ? "myself," : "";
    unsigned primaries = cluster->primaries, primary = other % primaries;

    fprintf(file, "%s %s:%u@%u %s", ids[other], redis_server_address(redis),
            redis->options.tls_port ? redis->options.tls_port : redis->port, redis->options.cluster_port, me);
    if (other == primary)
        fprintf(file, "master - 0 0 %u connected %u-%u\n", primary + 1, primary * SLOTS / primaries,
                (primary + 1) * SLOTS / primaries - 1);
    else
        fprintf(file, "slave %s 0 0 %u connected\n", ids[primary], primary + 1);
}

void cluster_servers_introduce(const struct cluster_servers *cluster)
{
    char ids[CLUSTER_SERVERS_MAX][NODE_ID_BYTES], path[PROCESS_PATH_BYTES + 16];

    name_all(cluster, ids);
    for (unsigned i = 0; i < cluster->count; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s/nodes.conf", cluster->servers[i].folder);
        if (!(file = fopen(path, "w")))
            test_give_up("%s cannot be written", path);
        for (unsigned other = 0; other < cluster->count; other++)
            print_node(file, cluster, i, other, ids);
        fprintf(file, "vars currentEpoch %u lastVoteEpoch 0\n", cluster->primaries);
        fclose(file);
    }
}

void cluster_servers_started(struct cluster_servers *cluster)
{
    if (!cluster_servers_wait_whole(cluster, PATIENCE_MS))
        test_give_up("the cluster does not become whole, see %s", cluster->servers[0].process.out_path);
    print_url(cluster, false, cluster->url);
}

void cluster_servers_start(struct cluster_servers *cluster, unsigned primaries, bool has_replicas)
{
    cluster_servers_start_tls(cluster, primaries, has_replicas, NULL);
}

/* Only now: on a busy machine, servers that start would take each other for dead. Those that are held up for a second
 * or two are not replaced. */
static void replace_soon(struct cluster_servers *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++) {
        cluster->servers[i].options.cluster_timeout_ms = 3000;
        redis_server_tell(&cluster->servers[i], "CONFIG", "SET", "cluster-node-timeout", "3000", NULL);
    }
}

void cluster_servers_start_tls(struct cluster_servers *cluster, unsigned primaries, bool has_replicas, const char *tls)
{
    *cluster = (struct cluster_servers){.primaries = primaries, .count = has_replicas ? 2 * primaries : primaries};
    for (unsigned i = 0; i < cluster->count; i++) {
        struct redis_server_options options = {
            .tcp = true, .cluster_port = free_port(), .serves_part = true, .tls = tls};

        options.tls_port = tls ? free_port() : 0;
        redis_server_prepare(&cluster->servers[i], &options);
    }
    cluster_servers_introduce(cluster);
    for (unsigned i = 0; i < cluster->count; i++)
        redis_server_restart(&cluster->servers[i]);
    cluster_servers_started(cluster);
    if (has_replicas)
        replace_soon(cluster);
    if (tls)
        print_url(cluster, true, cluster->tls_url);
}

/* The error of all others is MOVED, or CLUSTERDOWN as long as nobody is. */
static bool serves(const struct redis_server *server, const char *name)
{
    char reply[256];

    redis_server_ask(server, reply, sizeof reply, "EXISTS", name, NULL);
    return reply[0] != '-';
}

unsigned cluster_servers_primary_of(const struct cluster_servers *cluster, const char *name, int frozen)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (deadline_left_ms(deadline) > 0) {
        for (unsigned i = 0; i < cluster->count; i++)
            if (cluster->servers[i].process.pid != 0 && (int)i != frozen && serves(&cluster->servers[i], name))
                return i;
        poll(NULL, 0, STEP_MS);
    }
    test_give_up("no node of the cluster serves %s", name);
}

static void name_slot(const struct cluster_servers *cluster, const char *name, char ret_slot[16])
{
    redis_server_ask(&cluster->servers[0], ret_slot, 16, "CLUSTER", "KEYSLOT", name, NULL);
}

void cluster_servers_move_begin(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to)
{
    char slot[16], from_id[64], to_id[64];

    name_slot(cluster, name, slot);
    name_node(&cluster->servers[from], from_id);
    name_node(&cluster->servers[to], to_id);
    /* If the owner was replaced during an earlier move, the target knows of no owner, and takes no names. */
    redis_server_tell(&cluster->servers[to], "CLUSTER", "SETSLOT", slot, "NODE", from_id, NULL);
    redis_server_tell(&cluster->servers[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", from_id, NULL);
    redis_server_tell(&cluster->servers[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", to_id, NULL);
}

bool cluster_servers_move_keys(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to,
                               unsigned keys)
{
    char slot[16], count[16], port[8], found[REPLY_BYTES], *rest = found, *key;
    bool is_any = false;

    name_slot(cluster, name, slot);
    snprintf(count, sizeof count, "%u", keys);
    snprintf(port, sizeof port, "%u", cluster->servers[to].port);
    redis_server_ask(&cluster->servers[from], found, sizeof found, "CLUSTER", "GETKEYSINSLOT", slot, count, NULL);
    while ((key = strsep(&rest, "\n")) && key[0]) {
        redis_server_tell(&cluster->servers[from], "MIGRATE", redis_server_address(&cluster->servers[to]), port, key,
                          "0", "10000", NULL);
        is_any = true;
    }
    return is_any;
}

void cluster_servers_move_end(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to)
{
    char slot[16], id[64];

    name_slot(cluster, name, slot);
    name_node(&cluster->servers[to], id);
    redis_server_tell(&cluster->servers[to], "CLUSTER", "SETSLOT", slot, "NODE", id, NULL);
    redis_server_tell(&cluster->servers[from], "CLUSTER", "SETSLOT", slot, "NODE", id, NULL);
}

void cluster_servers_stop(struct cluster_servers *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++)
        redis_server_stop(&cluster->servers[i]);
}
