#include "lease/fence.h"
#include "base/clock.h"
#include "leak_guard.h"
#include <criterion/criterion.h>
#include <inttypes.h>

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

static int64_t replicas_told, usual_told;

static int64_t tell_replicas(const struct redis_resolver *resolver)
{
    (void)resolver;
    return replicas_told;
}

static int64_t tell_usual(const struct redis_resolver *resolver)
{
    (void)resolver;
    return usual_told;
}

/* A cluster gives a primary more replicas for a while; Sentinels do not. */
Test(fence, knows_the_usual_number_of_replicas)
{
    static const struct redis_resolver SENTINELS = {.what = "Sentinel", .replicas = tell_replicas},
                                       CLUSTER = {.what = "the cluster",
                                                  .replicas = tell_replicas,
                                                  .replicas_usual = tell_usual};
    struct fence fence = {.replicas_listed = 1};

    cr_expect_eq(fence_replicas_usual(&fence), 1);
    replicas_told = 3;
    usual_told = 2;
    fence.resolver = &SENTINELS;
    cr_expect_eq(fence_replicas_usual(&fence), 3);
    fence.resolver = &CLUSTER;
    cr_expect_eq(fence_replicas_usual(&fence), 2);
    cr_expect_eq(fence_replicas(&fence), 3);
}

static const struct redis_resolver RESOLVER = {.what = "the cluster", .replicas = tell_replicas};

/* Replicas of another primary may follow the new one, while its own were cut off together with the old one. */
Test(fence, a_primary_of_a_cluster_stops_when_it_reaches_no_majority)
{
    static const struct {
        int64_t node_timeout_ms, stops_after_ms;
    } CASES[] = {{15000, 25850}, {30000, 50600}, {2000, 4400}, {0, 4510}};

    replicas_told = 3;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fence fence = {
            .resolver = &RESOLVER, .min_replicas = 1, .is_cluster = true, .connected_ns = 1, .followed_ns = 2000};

        fence_on_settings(&fence, CASES[i].node_timeout_ms);
        cr_expect_eq(fence_sole_since_ns(&fence), 2000 + (uint64_t)CASES[i].stops_after_ms * CLOCK_NS_PER_MS,
                     "case %zu: %" PRIu64, i, fence_sole_since_ns(&fence));
    }
}

/* A replica that came from another primary may be the one that follows. */
Test(fence, replicas_of_a_cluster_are_counted_before_they_count)
{
    struct fence fence = {
        .resolver = &RESOLVER, .min_replicas = 1, .is_cluster = true, .connected_ns = 1, .followed_ns = 2000};

    replicas_told = 1;
    cr_expect_eq(fence_sole_since_ns(&fence), 1, "the only one has acknowledged every heartbeat");
    cr_expect_eq(fence_lease_unknown_ms(&fence), 0);
    replicas_told = 2;
    cr_expect_eq(fence_sole_since_ns(&fence), 2000 + 3000 * CLOCK_NS_PER_MS);
    cr_expect_eq(fence_lease_unknown_ms(&fence), FENCE_LEASE_MAX_MS);
    fence.is_cluster = false;
    cr_expect_eq(fence_sole_since_ns(&fence), 2000);
    fence.followed_ns = 0;
    fence.is_cluster = true;
    cr_expect_eq(fence_sole_since_ns(&fence), 0);
}
