/* Who does the damage: a few lanes at once, each beginning a fault at random, keeping it up for a while, mending it,
 * and beginning the next. A lane's choices come from the seed alone. */
#pragma once
#include "cluster.h"
#include "history.h"
#include "setback.h"

enum { NEMESIS_LANES_MAX = 3 };

struct nemesis_plan {
    struct cluster *cluster;
    struct history *history;
    struct setbacks *setbacks;
    unsigned seed;
    unsigned unit_ms;  /* what the lengths of faults are counted in: the lease */
    unsigned lanes;    /* how many faults at once, up to NEMESIS_LANES_MAX */
    const char *focus; /* only faults of this name; NULL: all */
};

struct nemesis;

/* NULL when there is no fault of the name of plan->focus. Without a proxy, the faults are those of nodes. */
struct nemesis *nemesis_start(const struct nemesis_plan *plan);
/* Returns when all is mended: every node runs and is reached. The lanes' threads go on, idle, because processes that a
 * thread has started die with it. */
void nemesis_mend(struct nemesis *nemesis);
/* After cluster_stop(). */
void nemesis_end(struct nemesis *nemesis);
/* How often each fault was done, one a line. */
void nemesis_print_counts(const struct nemesis *nemesis);
