/* A Redis Cluster of the test's own, on free ports of 127.0.0.1: primaries, each with one replica or none. A node that
 * says nothing for a second counts as dead, and the others go on without it. All calls block. */
#pragma once
#include "redis_server.h"

enum { CLUSTER_PRIMARIES_MAX = 3, CLUSTER_SERVERS_MAX = 2 * CLUSTER_PRIMARIES_MAX };

struct cluster_servers {
    struct redis_server servers[CLUSTER_SERVERS_MAX]; /* the primaries, then their replicas in the same order */
    unsigned primaries, count;
    char url[PROCESS_PATH_BYTES];     /* for --redis */
    char tls_url[PROCESS_PATH_BYTES]; /* empty without TLS */
};

/* Returns when all slots are served and all replicas are in sync. */
void cluster_servers_start(struct cluster_servers *cluster, unsigned primaries, bool has_replicas);
/* The same with TLS, which the test's own calls may do without: tls as in redis_server_options. */
void cluster_servers_start_tls(struct cluster_servers *cluster, unsigned primaries, bool has_replicas, const char *tls);
/* The same in steps, with servers that the caller prepares, and starts once they have been introduced: each begins with
 * what it would know after all have met, which takes Redis seconds. */
void cluster_servers_introduce(const struct cluster_servers *cluster);
void cluster_servers_started(struct cluster_servers *cluster);
/* The index of the server that serves the slot of a name. Servers that were killed, or are `frozen` (an index; -1:
 * none), are not asked. Waits until there is one. */
unsigned cluster_servers_primary_of(const struct cluster_servers *cluster, const char *name, int frozen);
/* Waits until all are up and agree, each primary with its replica in sync. False after timeout_ms. */
bool cluster_servers_wait_whole(const struct cluster_servers *cluster, unsigned timeout_ms);
/* Moves the slot of a name as redis-cli does: both ends are told, then its keys are moved, at most `keys` each time,
 * then both are told of the new owner. */
void cluster_servers_move_begin(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to);
/* False: no keys are left. */
bool cluster_servers_move_keys(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to,
                               unsigned keys);
void cluster_servers_move_end(const struct cluster_servers *cluster, const char *name, unsigned from, unsigned to);
void cluster_servers_stop(struct cluster_servers *cluster);
