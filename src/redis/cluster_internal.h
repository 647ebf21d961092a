/* A Redis Cluster: cluster.c asks its nodes, and cluster_slots.c decides what their answers say of each slot. */
#pragma once
#include "base/callback.h"
#include "cluster_topology.h"
#include "redis/cluster.h"

enum { CLUSTER_TROUBLE_BYTES = REDIS_HOST_BYTES + 192 };

struct redis_cluster {
    uv_loop_t *loop;
    struct redis_target target; /* of each node, without its address */
    struct redis_tls *tls;
    uint32_t timeout_ms;
    struct list peers; /* struct cluster_peer */
    unsigned peer_count;
    struct list slots; /* struct cluster_slot */
    struct redis_rounds rounds;
    struct cluster_roster roster; /* as it was named last; empty: nobody has named any */
    /* The seeds are of one cluster. Until that is known, nothing is decided; later, others are ignored. */
    bool is_settled;

    unsigned open; /* links and timer still open */
    bool is_closing;
    struct callback closed;
};

/* cluster.c */

/* Some node named that one: from now on it is asked too. */
void cluster_name_node(struct redis_cluster *cluster, const struct cluster_node *node);
/* A follower needs the primary of a slot. If no node is connected, it waits for the first one or for the next round. */
void cluster_ask(struct redis_cluster *cluster);

/* cluster_slots.c */

/* A round begins: what was said in the last one is void. */
void cluster_slots_begin(struct redis_cluster *cluster);
/* Takes a node's view. host: where the node was reached. */
void cluster_slots_take(struct redis_cluster *cluster, const struct cluster_topology *view, const char *host);
/* The round ends. may_fail: no further answer is near, so a slot without a primary is a failure. trouble: why no node
 * knows anything; NULL: one does. */
void cluster_slots_decide(struct redis_cluster *cluster, bool have_most_answered, bool may_fail, const char *trouble);
void cluster_slots_fail(struct redis_cluster *cluster, const char *trouble);
/* Crashes if a link still follows one. */
void cluster_slots_check_unused(const struct redis_cluster *cluster);
void cluster_slots_free(struct redis_cluster *cluster);
