/* How long an account is not served after a fault: asked again and again by keys of live mode, which the history's own
 * are not: nobody looks for them afterwards. */
#pragma once
#include "cluster.h"

enum { PROBE_GIVE_UP_MS = 180000 };

/* Since the fault began. */
struct probe_times {
    int64_t checks_ms;  /* until every node accepted a key again */
    int64_t writes_ms;  /* until every node created one */
    int64_t revokes_ms; /* until a revocation was answered */
};

int64_t probe_since(int64_t start_ms);
/* A key of that account, made by the first node that does; gives up when none does. */
void probe_make(struct cluster *cluster, const struct cluster_account *account, char ret_id[ID_TEXT_BYTES]);
/* By the nodes from the first one on; gives up when that takes too long. probe_id: the key that is revoked. */
void probe_measure(struct cluster *cluster, const struct cluster_account *account, unsigned first_node,
                   const char *probe_id, int64_t start_ms, struct probe_times *ret_times);
