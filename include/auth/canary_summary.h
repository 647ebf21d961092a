/* The canaries of all partitions as one, for operators and the console. */
#pragma once
#include "records/canary_store.h"
#include "engine/partitions.h"

enum { CANARY_WHY_BYTES = 128 };

struct canary_summary {
    unsigned partitions;  /* added so far */
    bool has_run;         /* a run was finished in each of them */
    int64_t since_run_ms; /* in the partition where that is longest ago, as run_by */
    char run_by[NODE_NAME_MAX_BYTES];
    int64_t took_us;                   /* the longest revocation of the last runs */
    int64_t refused, accepted, silent; /* nodes, in the partition where most accepted, or else were silent */
    char slowest[NODE_NAME_MAX_BYTES]; /* the last node to refuse a key in the last runs; empty: not known */
    int64_t slowest_ms;
    int64_t runs, unfinished, since_unfinished_ms, violations, since_violation_ms; /* since…: -1: never */
    char unfinished_why[CANARY_WHY_BYTES], violated_by[NODE_NAME_MAX_BYTES];
};

/* Adds what one partition says to a zeroed summary. state NULL: no node has run it there. Names are printable after
 * that. */
void canary_summary_add(struct canary_summary *summary, const struct canary_state *state);

/* summary: NULL unless STORE_OK. Reads every partition. */
typedef void canary_summed(void *arg, enum store_result result, const struct canary_summary *summary);
void canary_sum(const struct partitions *partitions, canary_summed *done, void *arg);
