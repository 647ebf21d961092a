/* Failovers under load: the master is killed, or stopped and later woken, Sentinels promote a replica, and the one that
 * was lost comes back as it was, believing itself the master until it is told otherwise. */
#pragma once
#include "cluster.h"
#include "history.h"
#include "probe.h"
#include "setback.h"

/* Where all replicas must acknowledge, writes wait until the old master is one: Sentinels take some ten seconds to tell
 * it. */
enum { FAILOVER_LIMIT_MS = 10000, FAILOVER_LIMIT_WHOLE_MS = 30000 };

struct failover_plan {
    struct cluster *cluster;
    struct history *history;
    struct setbacks *setbacks;
    bool only_setbacks; /* each round is one in which a replica that lags is promoted */
};

/* One round; times from the loss of the master, of the nodes that can hear of it. */
struct failover {
    const char *how;
    unsigned from, to; /* which Redis */
    int64_t named_ms;  /* until the Sentinels named another */
    struct probe_times times;
    int64_t returned_ms; /* until the lost one was a replica in step, from when it came back */
    /* For the rounds in which the store goes back: */
    unsigned turn; /* of these */
    struct history *history;
    struct setbacks *setbacks;
};

/* In turn: the master is stopped together with the first node and its Sentinel, and both wake when a revocation has
 * been answered, the first Redis without hearing that its replicas have left it; killed; stopped for some seconds;
 * stopped so while the first node's Sentinel is stopped too, so that this node goes on with the old master when it
 * wakes; lost together with the replica that acknowledged everything, so that one which lags is promoted, by the
 * Sentinels or by hand, in half of the rounds without a node. Where all replicas must acknowledge the lost one comes
 * back as soon as another was promoted. Returns when all is whole again. A round whose writes took longer than the
 * limit, or that does not become whole, is a violation. */
void failover_run(const struct failover_plan *plan, unsigned round, struct failover *ret_failover);
