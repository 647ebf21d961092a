/* What --store sentinel runs: a master, two replicas, and three Sentinels, each on a host of its own. */
#pragma once
#include "sentinel.h"
#include "server.h"

struct sim_redises {
    struct sim_host *hosts[SIM_WATCHED], *sentinel_hosts[SIM_SENTINELS];
    struct sim_server *servers[SIM_WATCHED];
    struct sim_sentinel *sentinels[SIM_SENTINELS];
    unsigned master; /* as the highest configuration says, and its number */
    uint64_t epoch;
    void (*switched)(void); /* after that has changed; NULL: nobody wants to know */
};

#define SIM_REDISES_URL "redis-sentinel://10.0.0.110:26379,10.0.0.111:26379,10.0.0.112:26379/" SIM_MASTER_NAME

enum { SIM_REDISES_HOSTS = SIM_WATCHED + SIM_SENTINELS };

/* ret_hosts: all of them. */
void sim_redises_make_hosts(struct sim_redises *redises, struct sim_host *ret_hosts[SIM_REDISES_HOSTS]);
/* They need a few seconds to find each other. */
void sim_redises_start(struct sim_redises *redises);
