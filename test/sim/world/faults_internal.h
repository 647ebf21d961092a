/* A fault, as a row of a table. */
#pragma once
#include "deployment.h"

/* What a fault needs for itself: something of its node, or of the store. */
enum sim_need {
    NEEDS_PROCESS,
    NEEDS_LINK,
    NEEDS_DELAY,
    NEEDS_LAG,
    NEEDS_CLIENTS,
    NEEDS_CLOCK,
    NEEDS_REDIS,
    NEEDS_SLOTS,
    NEEDS_ALL,
};

struct sim_fault {
    const char *name;
    enum sim_need need;
    void (*begin)(struct sim_node *node);
    void (*end)(struct sim_node *node); /* NULL: it does not last */
    bool of_one_redis;                  /* it is for a store of one Redis alone */
    uint64_t lasts_ms;                  /* 0: that is drawn */
};
