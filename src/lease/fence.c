#include "lease/fence.h"
#include "base/clock.h"
#include "core/lease_rules.h"

enum {
    /* min-replicas-max-lag as it may be at most, one second more, for Redis counts whole ones, the second and a tick of
     * its timer until a master counts its replicas again; all by a clock 10 % slower than ours. */
    FENCE_MS = ((FENCE_REPLICA_LAG_MAX_S + 1) * 1000 + 1000 + 100) * 11 / 10,
};

void fence_on_connection(struct fence *fence, bool is_up)
{
    fence->connected_ns = is_up ? clock_boot_ns() : 0;
    fence->followed_ns = 0;
}

void fence_on_followed(struct fence *fence)
{
    if (fence->followed_ns == 0)
        fence->followed_ns = clock_boot_ns();
}

/* A master lists the replicas that are connected to it, which another one may not be that is promoted next. Sentinel
 * goes on to count those that are down, and knows of none that it would promote and does not count. */
int64_t fence_replicas(const struct fence *fence)
{
    int64_t told = fence->sentinel ? redis_sentinel_replicas(fence->sentinel) : 0;

    return told > fence->replicas_listed ? told : fence->replicas_listed;
}

enum takeover takeover_of(int64_t replicas_known, int64_t min_replicas)
{
    if (min_replicas >= replicas_known)
        return TAKEOVER_ALL;
    return 2 * min_replicas >= replicas_known ? TAKEOVER_MOST : TAKEOVER_FENCE;
}

/* What a master grants it grants before it was replaced (rule 10), by the kind of takeover:
 * ALL    Each heartbeat was acknowledged by the replica that was promoted since. So it was sent before the promotion,
 *        hence before we connected to the new master.
 * MOST   Of N replicas that this master has, the old one among them, R follow it. Any other master has N - 1 - R left
 *        at most, which is less than R. So what it grants was sent before R were first seen to follow this one.
 * FENCE  Some may still follow the old one then. When they are moved its own count of replicas stops it, late by the
 *        lag that it allows.
 * Without Sentinels the second is all that can be said: nobody tells how many replicas could be promoted by hand. */
uint64_t fence_sole_since_ns(const struct fence *fence)
{
    enum takeover takeover = takeover_of(fence_replicas(fence), fence->min_replicas);

    if (fence->sentinel && !RULE(RULE_FENCE))
        return 1;
    if (fence->sentinel && takeover == TAKEOVER_FENCE) {
        uint64_t since_ns = fence->min_replicas > 0 ? fence->followed_ns : fence->connected_ns;

        return since_ns > 0 ? since_ns + FENCE_MS * CLOCK_NS_PER_MS : 0;
    }
    if (fence->min_replicas == 0 || (fence->sentinel && takeover == TAKEOVER_ALL))
        return fence->connected_ns;
    return fence->followed_ns;
}

/* Where all replicas have a heartbeat, whichever is promoted knows how long its lease is. Elsewhere one may be promoted
 * that was cut off when a node came with a longer lease than any before; settings bound those. */
uint64_t fence_lease_unknown_ms(const struct fence *fence)
{
    bool is_unknown =
        fence->sentinel && RULE(RULE_FENCE) && takeover_of(fence_replicas(fence), fence->min_replicas) != TAKEOVER_ALL;

    return is_unknown ? FENCE_LEASE_MAX_MS : 0;
}
