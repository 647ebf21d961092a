/* Client threads: they create, check and revoke keys at random nodes and write down what they were told. */
#pragma once
#include "history.h"
#include <stdatomic.h>
#include <stdint.h>

enum { CLIENTS_NODES_MAX = 8 };

struct clients_counts {
    atomic_long created, revoked, accepted, refused, unavailable, broken, violations;
};

struct clients_plan {
    struct history *history;
    const char *manager; /* a key with keys:manage */
    uint16_t ports[CLIENTS_NODES_MAX];
    unsigned nodes;
    unsigned seed;
    atomic_bool stop;
    struct clients_counts counts;
};

/* Starts that many threads; clients_join() after plan->stop was set. */
void clients_start(struct clients_plan *plan, unsigned threads);
void clients_join(struct clients_plan *plan);
