/* Nodes as operators see them: what each says of itself, every ten seconds, and the registry of memberships. Reports
 * decide nothing: leases and barriers know only the registry (src/lease/README.md). */
#pragma once
#include "lease/membership.h"
#include "engine/store.h"

enum { NODE_REPORT_MAX_BYTES = 16 * 1024, NODE_NAME_MAX_BYTES = 256, NODES_LISTED_MAX = 16384 };

/* Writes a node's report, or drops it (empty). It goes out even if Redis was not found fit, and is no change: replicas
 * are not waited for. Nobody needs to know whether it arrived. Nothing is written to a store that has no account. */
void node_store_report(struct store *store, struct text node, struct text report);

struct node_row {
    struct text name, report; /* valid during the call; report: whatever was written */
    int64_t age_ms;           /* of the report */
};
struct node_list {
    int64_t lease_max_ms;
    const struct member_name *members; /* the registry */
    size_t member_count;
    const struct node_row *nodes;
    size_t node_count;
};
/* list: NULL unless STORE_OK. */
typedef void nodes_listed(void *arg, enum store_result result, const struct node_list *list);
void node_store_list(struct store *store, nodes_listed *done, void *arg);
