/* What one node of a Redis Cluster says about all of them: its answer to CLUSTER NODES. */
#pragma once
#include "redis/resolver.h"

enum { CLUSTER_NODE_ID_CHARS = 40, CLUSTER_NODES_MAX = 1000 };

struct cluster_node {
    char id[CLUSTER_NODE_ID_CHARS + 1];
    char primary_id[CLUSTER_NODE_ID_CHARS + 1]; /* of a replica; empty: none */
    struct redis_address address;               /* host empty: the node does not know its own; port 0: none */
    bool is_myself, is_primary;
    bool has_slots;
    uint64_t epoch; /* of a primary's configuration */
};

struct cluster_range {
    unsigned first, last; /* slots, both included */
    size_t node;
};

/* A slot that a node is handing over to another, or importing from it, by its own word. */
struct cluster_move {
    unsigned slot;
    bool is_import;
    char other_id[CLUSTER_NODE_ID_CHARS + 1];
};

struct cluster_topology {
    struct cluster_node *nodes;
    size_t node_count;
    struct cluster_range *ranges;
    size_t range_count;
    struct cluster_move *moves; /* of who said this */
    size_t move_count;
    const struct cluster_node *myself; /* who said this */
};

/* with_names: takes the host names that nodes announce in place of their addresses, because certificates hold names.
 * False: malformed; ret_topology is empty then. */
MUST_CHECK bool cluster_topology_parse(struct text nodes, bool with_names, struct cluster_topology *ret_topology);
void cluster_topology_free(struct cluster_topology *topology);
/* The primary that serves the slot; NULL: none. */
const struct cluster_node *cluster_topology_owner(const struct cluster_topology *topology, unsigned slot);
/* The slot's migration as reported by this node; NULL: none. */
const struct cluster_move *cluster_topology_move(const struct cluster_topology *topology, unsigned slot);
/* NULL: none has that id. */
const struct cluster_node *cluster_topology_find(const struct cluster_topology *topology, const char *id);
/* How many nodes could hold what that primary holds: its replicas, and, because it may just have replaced another
 * primary, all primaries without slots with theirs. */
int64_t cluster_topology_replicas(const struct cluster_topology *topology, const struct cluster_node *primary);
/* How many replicas a primary has, taken over all of them and rounded down. The cluster moves single replicas by
 * itself, and primaries come and go while it grows or fails over. */
int64_t cluster_topology_replicas_usual(const struct cluster_topology *topology);

/* The ids of all nodes in one view of a cluster. A view that has none of them is of another cluster. Zeroed: empty. */
struct cluster_roster {
    char (*ids)[CLUSTER_NODE_ID_CHARS + 1];
    size_t count;
};
/* Replaces the ids by those of the view; NULL: empties and frees the roster. */
void cluster_roster_set(struct cluster_roster *roster, const struct cluster_topology *topology);
/* Whether the view has a node of the roster. A cluster may replace all its nodes, but not at once. */
bool cluster_roster_meets(const struct cluster_roster *roster, const struct cluster_topology *topology);
