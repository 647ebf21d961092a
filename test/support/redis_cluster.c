#include "redis_cluster.h"
#include "deadline.h"
#include "free_port.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16384, STEP_MS = 50, REPLY_BYTES = 16384 };

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

static void meet(const struct redis_server *server, const struct redis_server *other)
{
    char port[8], bus_port[8];

    snprintf(port, sizeof port, "%u", other->port);
    snprintf(bus_port, sizeof bus_port, "%u", other->options.cluster_port);
    redis_server_tell(server, "CLUSTER", "MEET", redis_server_address(other), port, bus_port, NULL);
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

/* Each gets an epoch of its own, so that they need not sort that out. */
static void give_slots(const struct cluster_servers *cluster)
{
    for (unsigned i = 0; i < cluster->primaries; i++) {
        char first[16], last[16], epoch[16];

        snprintf(first, sizeof first, "%u", i * SLOTS / cluster->primaries);
        snprintf(last, sizeof last, "%u", (i + 1) * SLOTS / cluster->primaries - 1);
        snprintf(epoch, sizeof epoch, "%u", i + 1);
        redis_server_tell(&cluster->servers[i], "CLUSTER", "ADDSLOTSRANGE", first, last, NULL);
        redis_server_tell(&cluster->servers[i], "CLUSTER", "SET-CONFIG-EPOCH", epoch, NULL);
    }
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

void cluster_servers_join(struct cluster_servers *cluster)
{
    unsigned primaries = cluster->primaries;
    char id[64];

    give_slots(cluster);
    for (unsigned i = 1; i < cluster->count; i++)
        meet(&cluster->servers[0], &cluster->servers[i]);
    if (!wait_for(cluster, are_acquainted, PATIENCE_MS))
        test_give_up("the nodes of the cluster do not meet, see %s", cluster->servers[0].process.out_path);
    for (unsigned i = primaries; i < cluster->count; i++) {
        name_node(&cluster->servers[i - primaries], id);
        redis_server_tell(&cluster->servers[i], "CLUSTER", "REPLICATE", id, NULL);
    }
    if (!cluster_servers_wait_whole(cluster, PATIENCE_MS))
        test_give_up("the cluster does not become whole, see %s", cluster->servers[0].process.out_path);
    print_url(cluster, false, cluster->url);
}

void cluster_servers_start(struct cluster_servers *cluster, unsigned primaries, bool has_replicas)
{
    cluster_servers_start_tls(cluster, primaries, has_replicas, NULL);
}

/* Only now: on a busy machine, servers that meet would take each other for dead. Those that are held up for a second
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
        redis_server_start(&cluster->servers[i], &options);
    }
    cluster_servers_join(cluster);
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
