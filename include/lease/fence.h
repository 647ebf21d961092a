/* The fence of a failover (rules 7 and 10): what leases another Redis may have granted that was replaced by this one,
 * and that this one knows nothing of. */
#pragma once
#include "redis/sentinel.h"

struct fence {
    struct redis_sentinel *sentinel; /* NULL: none, a master is replaced by hand alone */
    int64_t min_replicas;            /* as lease_settings has it */
    int64_t replicas_listed;         /* by the master when it was last asked, in any state */
    uint64_t connected_ns;           /* when the link of changes came up; 0 while it is down */
    uint64_t followed_ns; /* when on that connection min_replicas replicas first acknowledged something; 0: not yet */
};

/* What is known of leases that another master has granted, which Sentinel has replaced but which may go on. It needs
 * min_replicas of its replicas for each. */
enum takeover {
    TAKEOVER_ALL,   /* min_replicas is all that there are: one of them is the new master, so the old one has no more */
    TAKEOVER_MOST,  /* at least half: as soon as as many follow the new master the old one has too few left */
    TAKEOVER_FENCE, /* fewer: until replicas have been moved, and the old one's min-replicas-to-write stops it */
};
enum takeover takeover_of(int64_t replicas_known, int64_t min_replicas);

enum {
    /* While a replica may be promoted that has not acknowledged a heartbeat: what the new master knows of leases
     * (lease_max) may be too little, so that none may be longer, and a node must leave a master that does not answer
     * before long. */
    FENCE_LEASE_MAX_MS = 1000,
    FENCE_TIMEOUT_MAX_MS = 1000,
    /* The longest min-replicas-max-lag under which a master that was replaced stops to grant leases in time. */
    FENCE_REPLICA_LAG_MAX_S = 2,
};

/* The link of changes came up, or is down. */
void fence_on_connection(struct fence *fence, bool is_up);
/* Enough replicas have acknowledged what was sent on it. */
void fence_on_followed(struct fence *fence);

/* Replicas that may be promoted. */
int64_t fence_replicas(const struct fence *fence);
/* From when on no other Redis grants leases, by clock_boot_ns(): it may lie ahead. 0: not known yet. */
uint64_t fence_sole_since_ns(const struct fence *fence);
/* The longest lease that may run though this Redis knows nothing of it (its lease_max is shorter); 0: none. */
uint64_t fence_lease_unknown_ms(const struct fence *fence);
