#include "redises.h"
#include <stdio.h>

static const char *const REDISES[SIM_WATCHED] = {"10.0.0.100", "10.0.0.101", "10.0.0.102"};
static const char *const SENTINELS[SIM_SENTINELS] = {"10.0.0.110", "10.0.0.111", "10.0.0.112"};

void sim_redises_make_hosts(struct sim_redises *redises, struct sim_host *ret_hosts[SIM_REDISES_HOSTS])
{
    char name[SIM_HOST_NAME_BYTES];

    for (unsigned i = 0; i < SIM_WATCHED; i++) {
        snprintf(name, sizeof name, "redis%u", i + 1);
        redises->hosts[i] = ret_hosts[i] = sim_host_new(name, REDISES[i]);
    }
    for (unsigned i = 0; i < SIM_SENTINELS; i++) {
        snprintf(name, sizeof name, "sentinel%u", i + 1);
        redises->sentinel_hosts[i] = ret_hosts[SIM_WATCHED + i] = sim_host_new(name, SENTINELS[i]);
    }
}

static void on_switched(void *arg, unsigned master, uint64_t epoch)
{
    struct sim_redises *redises = arg;

    if (epoch <= redises->epoch)
        return;
    redises->epoch = epoch;
    redises->master = master;
    if (redises->switched)
        redises->switched();
}

/* As docker/redis/README.md says. */
static void start_redis(struct sim_redises *redises, unsigned index)
{
    struct sim_server *server = sim_server_start(redises->hosts[index]);
    char master[32];

    redises->servers[index] = server;
    snprintf(master, sizeof master, "%s 6379", REDISES[0]);
    sim_server_configure(server, "min-replicas-to-write", "1");
    sim_server_configure(server, "min-replicas-max-lag", "2");
    sim_server_configure(server, "replica-announce-ip", REDISES[index]);
    if (index > 0)
        sim_server_configure(server, "replicaof", master);
}

void sim_redises_start(struct sim_redises *redises)
{
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        start_redis(redises, i);
    for (unsigned i = 0; i < SIM_SENTINELS; i++) {
        struct sim_sentinel_plan plan = {
            .host = redises->sentinel_hosts[i], .number = i, .switched = on_switched, .arg = redises};

        for (unsigned j = 0; j < SIM_WATCHED; j++)
            plan.redises[j] = REDISES[j];
        for (unsigned j = 0; j < SIM_SENTINELS; j++)
            plan.sentinels[j] = SENTINELS[j];
        redises->sentinels[i] = sim_sentinel_start(&plan);
    }
}
