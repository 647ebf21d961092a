/* Finds the primary of each slot of a Redis Cluster. Asks the seeds and the nodes that they name what they know
 * (CLUSTER NODES): once a second, whenever a link is about to connect, and so whenever a link gets MOVED. A node is
 * believed to be the primary of a slot only if it says so itself, has the highest configuration epoch of all that do,
 * and no node knows a higher one for that slot. So one that was cut off or has just returned cannot lead back to an old
 * primary. When the primary of a slot changes, every link to it moves to the new one. Loop thread only. */
#pragma once
#include "redis/resolver.h"
#include "redis/tls.h"

enum { REDIS_SLOTS = 16384 };

struct redis_cluster;

/* target: only its seeds, user, password and tls are used. tls: needed for a target with tls. timeout_ms: for each
 * question. */
struct redis_cluster *redis_cluster_create(uv_loop_t *loop, const struct redis_target *target, struct redis_tls *tls,
                                           uint32_t timeout_ms);
/* Call when no resolver has a follower left. closed runs once, later. */
void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg);

/* For links to the primary of that slot. Lives as long as the cluster object; call it once for each slot. */
struct redis_resolver *redis_cluster_resolver(struct redis_cluster *cluster, unsigned slot);

/* The slot of a name: of what is in its first braces, or of all of it. */
unsigned redis_slot_of(struct text name);
