#include "lease/lease.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/mem.h"
#include <stdlib.h>

struct lease {
    struct lease_settings settings;
    struct fence fence;
    struct barriers *barriers;
    struct chains *chains;
    struct kept *kept;
    struct gathering *gathering;
    struct suspensions *suspensions;
    struct identity *identity;
    struct membership *member; /* NULL: none */
    struct callback closed;
};

struct lease *lease_create(const struct lease_settings *settings)
{
    struct lease *lease = mem_alloc(sizeof *lease);

    lease->settings = *settings;
    lease->fence = (struct fence){.resolver = settings->resolver,
                                  .min_replicas = settings->min_replicas,
                                  .may_be_replaced = settings->may_be_replaced};
    lease->barriers = barriers_create(&lease->settings, &lease->fence);
    lease->chains = chains_create();
    lease->kept = kept_create();
    lease->gathering = gathering_create(&lease->settings, lease->chains, lease->kept, &lease->fence);
    lease->suspensions = suspensions_create(&lease->settings);
    lease->identity = identity_create(&lease->settings, lease->gathering, lease->suspensions);
    return lease;
}

static void on_gathering_closed(void *arg)
{
    struct lease *lease = arg;
    const struct callback closed = lease->closed;

    identity_destroy(lease->identity);
    suspensions_destroy(lease->suspensions);
    kept_destroy(lease->kept);
    chains_destroy(lease->chains);
    free(lease);
    callback_run(closed);
}

static void on_barriers_closed(void *arg)
{
    struct lease *lease = arg;

    gathering_close(lease->gathering, on_gathering_closed, lease);
}

void lease_close(struct lease *lease, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!lease->member);
    lease->closed = (struct callback){closed, arg};
    barriers_close(lease->barriers, on_barriers_closed, lease);
}

static void on_left(void *arg)
{
    struct lease *lease = arg;

    lease->member = NULL;
    gathering_set_member(lease->gathering, NULL);
    identity_set_node(lease->identity, false);
}

struct membership *lease_join(struct lease *lease, const struct redis_target *target, uint32_t lease_ms)
{
    REQUIRE(!lease->member);
    const struct membership_parts parts = {lease->barriers, lease->suspensions, lease->identity, lease->kept};
    lease->member = membership_create(&lease->settings, &parts, target, lease_ms, on_left, lease);
    gathering_set_member(lease->gathering, lease->member);
    identity_set_node(lease->identity, true);
    return lease->member;
}

struct membership *lease_member(const struct lease *lease)
{
    return lease->member;
}

uint32_t lease_member_ms(const struct lease *lease)
{
    return lease->member ? membership_lease_ms(lease->member) : 0;
}

bool lease_may_decide(const struct lease *lease)
{
    return !lease->member || membership_may_decide(lease->member);
}

const struct lease_settings *lease_settings_of(const struct lease *lease)
{
    return &lease->settings;
}

struct barriers *lease_barriers(struct lease *lease)
{
    return lease->barriers;
}

struct fence *lease_fence(struct lease *lease)
{
    return &lease->fence;
}

struct identity *lease_identity(struct lease *lease)
{
    return lease->identity;
}

struct chains *lease_chains(struct lease *lease)
{
    return lease->chains;
}

struct kept *lease_kept(struct lease *lease)
{
    return lease->kept;
}

struct gathering *lease_gathering(struct lease *lease)
{
    return lease->gathering;
}

struct suspensions *lease_suspensions(struct lease *lease)
{
    return lease->suspensions;
}

void lease_on_connection(struct lease *lease, bool is_up)
{
    fence_on_connection(&lease->fence, is_up);
    if (is_up)
        gathering_on_connection(lease->gathering);
    else
        barriers_fail(lease->barriers);
}
