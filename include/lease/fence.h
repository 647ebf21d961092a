/* The fence after a failover (rules 7 and 10): which leases a replaced master may have granted that this Redis does not
 * know of. */
#pragma once
#include "redis/resolver.h"

struct fence {
    const struct redis_resolver *resolver; /* NULL: none tells who else could be promoted */
    int64_t min_replicas;                  /* these two as in lease_settings */
    bool may_be_replaced;
    bool is_cluster;         /* replicas may move from one primary to another by themselves */
    int64_t replicas_listed; /* by the master's last INFO, in any state */
    uint64_t stop_ms;        /* how long a replaced master may go on after its replicas have moved; 0: as by its lag */
    uint64_t lease_max_ms;   /* the longest lease of any node, as Redis said when it was examined */
    uint64_t connected_ns;   /* when the `changes` link came up; 0: it is down */
    uint64_t followed_ns; /* when min_replicas replicas first acknowledged something on that connection; 0: not yet */
};

/* When a master that was replaced stops granting leases. It needs min_replicas of its replicas for each. */
enum takeover {
    TAKEOVER_ALL,   /* all replicas must acknowledge: one of them is the new master, so at once */
    TAKEOVER_MOST,  /* at least half: as soon as min_replicas replicas follow the new master */
    TAKEOVER_FENCE, /* fewer: when the replicas have moved and its own min-replicas-to-write stops it */
};
enum takeover takeover_of(int64_t replicas_known, int64_t min_replicas);

enum {
    /* Limits for as long as a replica could be promoted that has not acknowledged every heartbeat. Its lease_max may be
     * too low, so no lease may be longer than this. And a node must soon leave a master that does not answer. */
    FENCE_LEASE_MAX_MS = 1000,
    FENCE_TIMEOUT_MAX_MS = 1000,
    /* The longest min-replicas-max-lag that stops a replaced master in time. */
    FENCE_REPLICA_LAG_MAX_S = 2,
};

/* The `changes` link came up or went down. */
void fence_on_connection(struct fence *fence, bool is_up);
/* The settings that stop a master that was replaced: its min-replicas-to-write and min-replicas-max-lag; in a cluster,
 * that it reaches no majority for cluster-node-timeout (0: no cluster). By CONFIG GET. */
void fence_on_settings(struct fence *fence, int64_t node_timeout_ms);
/* Enough replicas have acknowledged a write on that connection. */
void fence_on_followed(struct fence *fence);

/* How many replicas could be promoted. */
int64_t fence_replicas(const struct fence *fence);
/* The same, as the deployment is set up: a cluster may give a primary more of them for a while. */
int64_t fence_replicas_usual(const struct fence *fence);
/* From when on no other Redis grants leases, by clock_boot_ns(). It may lie in the future. 0: not known yet. */
uint64_t fence_sole_since_ns(const struct fence *fence);
/* The longest valid lease that this Redis may not know of, because its lease_max is lower; 0: none. */
uint64_t fence_lease_unknown_ms(const struct fence *fence);
