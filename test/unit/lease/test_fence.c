#include "lease/fence.h"
#include "base/clock.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(fence, .fini = leak_guard);

Test(fence, knows_how_many_replicas_end_leases)
{
    static const enum takeover EXPECTED[6][4] = {
        /* --min-replicas 0, 1, 2, 3 */
        {TAKEOVER_ALL, TAKEOVER_ALL, TAKEOVER_ALL, TAKEOVER_ALL},
        {TAKEOVER_FENCE, TAKEOVER_ALL, TAKEOVER_ALL, TAKEOVER_ALL},
        {TAKEOVER_FENCE, TAKEOVER_MOST, TAKEOVER_ALL, TAKEOVER_ALL},
        {TAKEOVER_FENCE, TAKEOVER_FENCE, TAKEOVER_MOST, TAKEOVER_ALL},
        {TAKEOVER_FENCE, TAKEOVER_FENCE, TAKEOVER_MOST, TAKEOVER_MOST},
        {TAKEOVER_FENCE, TAKEOVER_FENCE, TAKEOVER_FENCE, TAKEOVER_MOST},
    };

    for (int replicas = 0; replicas < 6; replicas++)
        for (int min_replicas = 0; min_replicas < 4; min_replicas++)
            cr_expect_eq(takeover_of(replicas, min_replicas), EXPECTED[replicas][min_replicas], "%d of %d",
                         min_replicas, replicas);
}

/* Without Sentinels. With them, test_barrier.c tests what a revocation waits for. */
Test(fence, a_connection_is_alone_once_its_replicas_follow)
{
    struct fence fence = {.min_replicas = 1, .replicas_listed = 3};

    cr_assert_eq(fence_sole_since_ns(&fence), 0);
    fence_on_connection(&fence, true);
    cr_assert_eq(fence_sole_since_ns(&fence), 0, "replicas may still follow another one");
    fence_on_followed(&fence);
    uint64_t since_ns = fence_sole_since_ns(&fence);
    cr_assert_geq(since_ns, fence.connected_ns);
    fence_on_followed(&fence);
    cr_assert_eq(fence_sole_since_ns(&fence), since_ns, "the first counts");
    cr_assert_eq(fence_lease_unknown_ms(&fence), 0);
    fence_on_connection(&fence, false);
    cr_assert_eq(fence_sole_since_ns(&fence), 0);
}

Test(fence, without_replicas_a_connection_is_alone_from_its_beginning)
{
    struct fence fence = {0};

    fence_on_connection(&fence, true);
    cr_assert_eq(fence_sole_since_ns(&fence), fence.connected_ns);
    cr_assert_leq(fence.connected_ns, clock_boot_ns());
}
