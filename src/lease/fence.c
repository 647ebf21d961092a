#include "lease/fence.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/lease_rules.h"

enum {
    /* A node of a cluster tells every second how many replicas there are. So one that came from elsewhere, and whose
     * acknowledgement proves nothing about the others, has been counted by then. */
    COUNTED_MS = 3000,
    CLUSTER_SPARE_MS = 1000,
    /* The longest min-replicas-max-lag allowed, plus 1 s because Redis counts whole seconds, plus 1.1 s until a master
     * counts its replicas again (each second, and a tick of its timer). All by a clock 10 % slower than ours. */
    FENCE_MS = ((FENCE_REPLICA_LAG_MAX_S + 1) * 1000 + 1000 + 100) * 11 / 10,
};

void fence_on_connection(struct fence *fence, bool is_up)
{
    fence->connected_ns = is_up ? clock_boot_ns() : 0;
    fence->followed_ns = 0;
}

/* A node of a cluster pings the others after half of cluster-node-timeout without a sign of them, and refuses
 * everything once a majority has not answered for the whole of it. Its min-replicas-to-write may stop it earlier, but
 * not if replicas were cut off together with it. */
void fence_on_settings(struct fence *fence, int64_t node_timeout_ms)
{
    fence->stop_ms = node_timeout_ms > 0 ? ((uint64_t)node_timeout_ms * 3 / 2 + CLUSTER_SPARE_MS) * 11 / 10 : FENCE_MS;
}

void fence_on_followed(struct fence *fence)
{
    if (fence->followed_ns == 0)
        fence->followed_ns = clock_boot_ns();
    ENSURE(fence->followed_ns >= fence->connected_ns);
}

/* A master lists only the replicas connected to it, and the next one promoted may not be among them. The
 * resolver still counts replicas that are down. Sentinel promotes only replicas that it counts. */
int64_t fence_replicas(const struct fence *fence)
{
    int64_t told = fence->resolver ? fence->resolver->replicas(fence->resolver) : 0;

    return told > fence->replicas_listed ? told : fence->replicas_listed;
}

int64_t fence_replicas_usual(const struct fence *fence)
{
    const struct redis_resolver *resolver = fence->resolver;

    return resolver && resolver->replicas_usual ? resolver->replicas_usual(resolver) : fence_replicas(fence);
}

enum takeover takeover_of(int64_t replicas_known, int64_t min_replicas)
{
    if (min_replicas >= replicas_known)
        return TAKEOVER_ALL;
    return 2 * min_replicas >= replicas_known ? TAKEOVER_MOST : TAKEOVER_FENCE;
}

/* Every lease that another master grants was sent before this moment (rule 10), by the kind of takeover:
 * ALL    The promoted replica had acknowledged each heartbeat. So each was sent before the promotion, and therefore
 *        before we connected to the new master.
 * MOST   R of this master's N replicas, the old master among them, follow it. Any other master has at most N - 1 - R
 *        left, fewer than R. So its heartbeats were sent before R were first seen to follow this one.
 * FENCE  Some replicas may still follow the old master. Once they have moved, its own replica count stops it, late by
 *        the lag that it allows. In a cluster, replicas come from other primaries while those of the old one stay with
 *        it, so there it stops when it reaches no majority.
 * Without a resolver only MOST is certain: nobody says how many replicas could be promoted by hand. If the operator
 * asserts that acknowledged writes survive (--redis-durability), each heartbeat is known to whichever Redis takes over,
 * and a replaced one acknowledges none: as with ALL. */
uint64_t fence_sole_since_ns(const struct fence *fence)
{
    enum takeover takeover = takeover_of(fence_replicas(fence), fence->min_replicas);

    if (fence->resolver && !RULE(RULE_FENCE))
        return 1;
    if (fence->resolver && takeover == TAKEOVER_FENCE) {
        uint64_t since_ns = fence->min_replicas > 0 ? fence->followed_ns : fence->connected_ns;

        return since_ns > 0 ? since_ns + (fence->stop_ms ? fence->stop_ms : FENCE_MS) * CLOCK_NS_PER_MS : 0;
    }
    if (fence->min_replicas == 0 || (fence->resolver && takeover == TAKEOVER_ALL))
        return fence->connected_ns;
    if (fence->is_cluster && fence->resolver && fence->followed_ns > 0)
        return fence->followed_ns + COUNTED_MS * CLOCK_NS_PER_MS;
    return fence->followed_ns;
}

/* If all replicas acknowledge each heartbeat, whichever is promoted knows the longest lease. Otherwise a replica may be
 * promoted that was cut off when a node joined with a longer lease than any before. The settings bound such leases. */
uint64_t fence_lease_unknown_ms(const struct fence *fence)
{
    bool is_unknown =
        fence->resolver && RULE(RULE_FENCE) && takeover_of(fence_replicas(fence), fence->min_replicas) != TAKEOVER_ALL;

    return is_unknown ? FENCE_LEASE_MAX_MS : 0;
}
