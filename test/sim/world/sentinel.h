/* A Sentinel on a host, at port 26379: it watches a master and its replicas, agrees with the others of its kind that
 * the master is down, and has a replica promoted. README.md says in what it differs from Redis'. */
#pragma once
#include "network.h"

enum { SIM_WATCHED = 3, SIM_SENTINELS = 3 };
#define SIM_MASTER_NAME "main"

struct sim_sentinel;

/* redises: the first one is the master at the beginning. Addresses in dots; the plan is copied. */
struct sim_sentinel_plan {
    struct sim_host *host;
    unsigned number; /* which of the sentinels it is */
    const char *redises[SIM_WATCHED], *sentinels[SIM_SENTINELS];
    void (*switched)(void *arg, unsigned master, uint64_t epoch); /* it has another master from now on */
    void *arg;
};

struct sim_sentinel *sim_sentinel_start(const struct sim_sentinel_plan *plan);
/* Which of the Redises it tells clients of, and since which configuration. */
unsigned sim_sentinel_master(const struct sim_sentinel *sentinel);
uint64_t sim_sentinel_epoch(const struct sim_sentinel *sentinel);
/* SENTINEL FAILOVER: at once, without asking the others. */
void sim_sentinel_failover(struct sim_sentinel *sentinel);
