/* The barrier on its own: registries and acknowledgements come from the test; time and the connection are real. */
#include "lease/lease.h"
#include "deadline.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/machine.h"
#include "base/metrics.h"
#include "redis/sentinel.h"
#include "engine/state.h"
#include "engine/store_examine.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { REGISTRY_MAX = 8, MANY = 2000 };

#define NS_PER_MS UINT64_C(1000000)
#define MEMBER_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MEMBER_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MEMBER_C "cccccccccccccccccccccccccccccccc"

TestSuite(barrier, .init = fixture_start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

struct outcome {
    unsigned calls;
    bool is_done, is_over;
    uint64_t at_ns;
};

static void on_done(void *arg, bool is_over)
{
    struct outcome *outcome = arg;

    outcome->calls++;
    outcome->is_done = true;
    outcome->is_over = is_over;
    outcome->at_ns = clock_boot_ns();
}

static struct barriers *barriers(void)
{
    return lease_barriers(store_lease(fixture.store));
}

static struct fence *fence(void)
{
    return lease_fence(store_lease(fixture.store));
}

static uint64_t wait_ns(uint64_t lease_ms)
{
    return (lease_ms * 125 / 100 + 50) * NS_PER_MS;
}

/* Makes this connection to Redis seem as old as the machine. */
static void make_connection_old(void)
{
    fence()->connected_ns = 1;
}

/* words: the content of the registry, alternately members and their entries. */
static bool wait_for(struct barrier *barrier, int64_t lease_max_ms, const char *const *words, size_t count,
                     struct outcome *outcome)
{
    struct redis_reply items[REGISTRY_MAX];
    const struct redis_reply *pointers[REGISTRY_MAX];
    const struct redis_reply registry = {.type = REPLY_ARRAY, .count = count, .items = pointers};

    cr_assert_leq(count, REGISTRY_MAX);
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct redis_reply){.type = REPLY_STRING, .text = text_of(words[i])};
        pointers[i] = &items[i];
    }
    return barrier_wait(barrier, lease_max_ms, &registry, on_done, outcome);
}

#define WAIT_FOR(barrier, lease_max_ms, outcome, ...)                             \
    cr_assert(wait_for(barrier, lease_max_ms, (const char *const[]){__VA_ARGS__}, \
                       sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *), outcome))

static void acknowledge(const char *membership, const char *name)
{
    barriers_acknowledge(barriers(), text_of(membership), text_of(name));
}

/* A copy of a barrier's name, because the barrier may have ended when it is needed. */
struct barrier_name {
    char text[BARRIER_NAME_CHARS + 1];
};

static struct barrier *begin(struct barrier_name *ret_name)
{
    struct barrier *barrier = barrier_begin(barriers());

    cr_assert_eq(barrier_name(barrier).len, BARRIER_NAME_CHARS);
    snprintf(ret_name->text, sizeof ret_name->text, "%.*s", TEXT_ARG(barrier_name(barrier)));
    return barrier;
}

static void until_done(const struct outcome *outcome)
{
    cr_assert(test_loop_until_set(&fixture.loop, &outcome->is_done, PATIENCE_MS));
}

static void expect_over(const struct outcome *outcome)
{
    cr_expect_eq(outcome->calls, 1);
    cr_expect(outcome->is_over);
}

Test(barrier, nobody_ever_had_a_lease)
{
    struct outcome outcome = {0};
    struct barrier_name name;

    cr_assert(wait_for(begin(&name), 0, NULL, 0, &outcome));
    expect_over(&outcome);
}

Test(barrier, an_empty_registry_counts_on_an_old_connection)
{
    struct outcome outcome = {0};
    struct barrier_name name;

    make_connection_old();
    cr_assert(wait_for(begin(&name), 5000, NULL, 0, &outcome));
    expect_over(&outcome);
}

/* Redis may have restarted and forgotten who was registered. */
Test(barrier, an_empty_registry_does_not_count_on_a_young_connection)
{
    struct outcome outcome = {0};
    struct barrier_name name;
    uint64_t since_ns = fence()->connected_ns;

    cr_assert(wait_for(begin(&name), 400, NULL, 0, &outcome));
    if (clock_boot_ns() < since_ns + wait_ns(400))
        cr_assert_eq(outcome.calls, 0);
    until_done(&outcome);
    expect_over(&outcome);
    cr_assert_geq(outcome.at_ns, since_ns + wait_ns(400));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
}

/* Rule 7: whoever has the shorter one, who revokes or another node. */
Test(barrier, the_longest_lease_of_any_node_counts)
{
    static const struct {
        uint32_t own_ms;
        int64_t lease_max_ms;
    } LEASES[] = {{100, 300}, {300, 100}, {0, 300}, {300, 0}};

    make_connection_old();
    for (size_t i = 0; i < sizeof LEASES / sizeof *LEASES; i++) {
        struct outcome outcome = {0};
        struct barrier_name name;
        uint64_t began_ns = clock_boot_ns();

        barriers_set_lease(barriers(), LEASES[i].own_ms);
        WAIT_FOR(begin(&name), LEASES[i].lease_max_ms, &outcome, MEMBER_A, "1 300");
        until_done(&outcome);
        expect_over(&outcome);
        cr_expect_geq(outcome.at_ns - began_ns, wait_ns(300), "%zu", i);
    }
}

/* Rule 10: which leases the replaced master may have granted, judging by what replicas acknowledged. All nodes in this
 * master's registry acknowledge. */

static void make_follower_of_sentinels(int64_t replicas, int64_t min_replicas)
{
    const struct redis_target target = {.master_name = "keys", .seed_count = 1, .seeds = {{"127.0.0.1", 1}}};

    fixture.store->sentinel = redis_sentinel_create(&fixture.loop, &target, NULL, 100);
    fixture.store->resolver = redis_sentinel_resolver(fixture.store->sentinel);
    fence()->resolver = fixture.store->resolver;
    cr_assert_eq(uv_timer_stop(&fixture.store->probe), 0); /* otherwise the real Redis would be counted */
    fence()->replicas_listed = replicas;
    fence()->min_replicas = min_replicas;
    fence()->connected_ns = clock_boot_ns();
}

/* When a revocation is over that all nodes have acknowledged. */
static uint64_t over_at(int64_t lease_max_ms)
{
    struct outcome outcome = {0};
    struct barrier_name name;

    WAIT_FOR(begin(&name), lease_max_ms, &outcome, MEMBER_A, "1 100");
    acknowledge(MEMBER_A, name.text);
    if (!outcome.is_done)
        until_done(&outcome);
    expect_over(&outcome);
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    return outcome.at_ns;
}

enum { SLACK_MS = 2000 }; /* for a slow machine */

static void expect_between(uint64_t at_ns, uint64_t from_ns, uint64_t least_ms)
{
    cr_expect_geq(at_ns, from_ns + least_ms * NS_PER_MS, "too early");
    cr_expect_lt(at_ns, from_ns + (least_ms + SLACK_MS) * NS_PER_MS, "too late");
}

/* The new master knows the longest lease, because it has acknowledged each. */
Test(barrier, all_replicas_knew_of_each_lease)
{
    make_follower_of_sentinels(2, 2);
    expect_between(over_at(100), fence()->connected_ns, 175);
    make_connection_old();
    uint64_t now_ns = clock_boot_ns();
    expect_between(over_at(5000), now_ns, 0);
}

/* The wait counts from the moment when enough replicas follow the new master. The longest lease is unknown, but
 * bounded. */
Test(barrier, a_majority_of_replicas_leaves_the_replaced_master)
{
    make_follower_of_sentinels(2, 1);
    make_connection_old();
    fence_on_followed(fence());
    uint64_t since_ns = fence()->followed_ns;
    fence_on_followed(fence());
    cr_assert_eq(fence()->followed_ns, since_ns, "the first counts");
    expect_between(over_at(100), since_ns, 1300);
    uint64_t now_ns = clock_boot_ns();
    expect_between(over_at(100), now_ns, 0);
}

/* Until then, acknowledgements cannot end it: W runs from the reply, for which enough replicas have acknowledged. */
Test(barrier, nobody_has_followed_yet)
{
    make_follower_of_sentinels(2, 1);
    make_connection_old();
    uint64_t now_ns = clock_boot_ns();
    expect_between(over_at(100), now_ns, 1300);
}

/* Redis' own fence of 4.1 s, by a clock a tenth slower than the revoker's. */
Test(barrier, fewer_replicas_may_stay_with_the_replaced_master)
{
    make_follower_of_sentinels(3, 1);
    fence_on_followed(fence());
    uint64_t since_ns = fence()->followed_ns;
    expect_between(over_at(100), since_ns, 4510 + 1300);
    uint64_t now_ns = clock_boot_ns();
    expect_between(over_at(100), now_ns, 0);
}

Test(barrier, a_command_that_waits_for_no_replica)
{
    make_follower_of_sentinels(1, 0);
    expect_between(over_at(100), fence()->connected_ns, 4510 + 1300);
}

/* It waits for a replaced master's leases like a revocation, but is none. */
Test(barrier, a_change_that_settles_is_no_revocation)
{
    struct outcome settled = {0}, lost = {0};

    make_follower_of_sentinels(2, 2);
    fence()->may_be_replaced = true;
    barriers_set_lease(barriers(), 400);
    barriers_settle(barriers(), on_done, &settled);
    cr_assert_eq(settled.calls, 0);
    until_done(&settled);
    expect_over(&settled);
    cr_expect_eq(histogram_count(HISTOGRAM_BARRIER), 0);

    fence()->connected_ns = clock_boot_ns();
    barriers_settle(barriers(), on_done, &lost);
    barriers_fail(barriers());
    cr_assert_eq(lost.calls, 1);
    cr_expect_not(lost.is_over);
    cr_expect_eq(metric_values[METRIC_BARRIER_FAILED], 0);
}

static void on_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    (void)result, (void)facts;
    *(bool *)arg = true;
}

static void examine(void)
{
    bool is_examined = false;

    store_examine(fixture.store, on_examined, &is_examined);
    cr_assert(test_loop_until_set(&fixture.loop, &is_examined, PATIENCE_MS));
}

/* A barrier under way ends when the old primary surely stopped, whether or not the new one can be examined again. */
Test(barrier, settings_that_cannot_be_read_do_not_shorten_the_fence)
{
    static const char *const FORBIDDEN[] = {"-config", "-info"};

    cr_assert_eq(uv_timer_stop(&fixture.store->probe), 0);
    for (size_t i = 0; i < sizeof FORBIDDEN / sizeof *FORBIDDEN; i++) {
        fence()->stop_ms = 25850;
        redis_server_tell(&fixture.server, "ACL", "SETUSER", "default", FORBIDDEN[i], NULL);
        examine();
        cr_expect_eq(fence()->stop_ms, 25850, "%s", FORBIDDEN[i]);
        redis_server_tell(&fixture.server, "ACL", "SETUSER", "default", "+@all", NULL);
    }
    examine();
    cr_expect_eq(fence()->stop_ms, 4510);
}

/* With manual failover, there may be any number of replicas. */
Test(barrier, without_sentinels_enough_replicas_must_follow_too)
{
    fence()->min_replicas = 1;
    make_connection_old();
    fence_on_followed(fence());
    expect_between(over_at(100), fence()->followed_ns, 175);
}

Test(barrier, nobody_acknowledges)
{
    struct outcome outcome = {0};
    struct barrier_name name;
    uint64_t began_ns;

    make_connection_old();
    began_ns = clock_boot_ns();
    WAIT_FOR(begin(&name), 200, &outcome, MEMBER_A, "1 200", MEMBER_B, "7 100");
    cr_assert_eq(outcome.calls, 0);
    acknowledge(MEMBER_A, name.text);
    cr_assert_eq(outcome.calls, 0, "one is missing");
    until_done(&outcome);
    expect_over(&outcome);
    cr_assert_geq(outcome.at_ns - began_ns, wait_ns(200));
    cr_assert_eq(histogram_count(HISTOGRAM_BARRIER), 1);
    cr_assert_geq(histograms[HISTOGRAM_BARRIER].sum_ns, wait_ns(200));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 1);
}

Test(barrier, all_acknowledge)
{
    struct outcome outcome = {0};
    struct barrier_name name;

    make_connection_old();
    WAIT_FOR(begin(&name), 5000, &outcome, MEMBER_A, "1 200", MEMBER_B, "7 100");
    acknowledge(MEMBER_B, name.text);
    cr_assert_eq(outcome.calls, 0);
    acknowledge(MEMBER_A, name.text);
    expect_over(&outcome);
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    acknowledge(MEMBER_A, name.text);
}

Test(barrier, all_acknowledge_on_a_young_connection)
{
    struct outcome outcome = {0};
    struct barrier_name name;
    uint64_t since_ns = fence()->connected_ns;

    WAIT_FOR(begin(&name), 400, &outcome, MEMBER_A, "1 200");
    acknowledge(MEMBER_A, name.text);
    until_done(&outcome);
    expect_over(&outcome);
    cr_assert_geq(outcome.at_ns, since_ns + wait_ns(400));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
}

Test(barrier, acknowledgements_overtake_the_reply)
{
    struct outcome outcome = {0};
    struct barrier_name name;
    struct barrier *barrier;

    make_connection_old();
    barrier = begin(&name);
    acknowledge(MEMBER_A, name.text);
    acknowledge(MEMBER_A, name.text);
    acknowledge(MEMBER_C, name.text);
    WAIT_FOR(barrier, 5000, &outcome, MEMBER_A, "1 200", MEMBER_B, "7 100");
    cr_assert_eq(outcome.calls, 0, "twice by one is once by each of two");
    acknowledge(MEMBER_A, name.text);
    cr_assert_eq(outcome.calls, 0);
    acknowledge(MEMBER_B, name.text);
    expect_over(&outcome);

    outcome = (struct outcome){0};
    barrier = begin(&name);
    acknowledge(MEMBER_A, name.text);
    WAIT_FOR(barrier, 5000, &outcome, MEMBER_A, "1 200");
    expect_over(&outcome);
}

/* A thousand nodes acknowledge, some before the reply; each is found, and none twice. */
Test(barrier, many_nodes)
{
    enum { NODES = 3000 };
    static char members[NODES][MEMBER_NAME_CHARS + 1];
    static struct redis_reply items[2 * NODES];
    static const struct redis_reply *pointers[2 * NODES];
    const struct redis_reply registry = {.type = REPLY_ARRAY, .count = sizeof items / sizeof *items, .items = pointers};
    struct outcome outcome = {0};
    struct barrier_name name;
    struct barrier *barrier;

    make_connection_old();
    for (unsigned i = 0; i < NODES; i++) {
        /* Some differ only at the end, so they have the same hash. */
        snprintf(members[i], sizeof members[i], "%08x%016x%08x", i % 7 ? i * 2654435761U : 0, 0, i);
        items[2 * i] = (struct redis_reply){.type = REPLY_STRING, .text = text_of(members[i])};
        items[2 * i + 1] = (struct redis_reply){.type = REPLY_STRING, .text = TEXT("1 5000")};
    }
    for (size_t i = 0; i < registry.count; i++)
        pointers[i] = &items[i];
    barrier = begin(&name);
    for (unsigned i = 0; i < NODES; i += 3)
        acknowledge(members[i], name.text);
    cr_assert(barrier_wait(barrier, 5000, &registry, on_done, &outcome));
    for (unsigned i = 1; i < NODES; i++) {
        cr_assert_eq(outcome.calls, 0, "%u are left", NODES - i);
        acknowledge(members[i], name.text);
        acknowledge(members[i / 2], name.text);
    }
    expect_over(&outcome);
}

Test(barrier, what_does_not_count)
{
    static const char *const SESSIONS[] = {MEMBER_C, "", "a", MEMBER_A "a", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    struct outcome outcome = {0}, other = {0};
    struct barrier_name name, other_name;
    char wrong[BARRIER_NAME_CHARS + 2];
    struct barrier *barrier;

    make_connection_old();
    barrier = begin(&name);
    WAIT_FOR(begin(&other_name), 5000, &other, MEMBER_A, "1 200");
    cr_assert_str_neq(name.text, other_name.text);
    for (int is_waiting = 0; is_waiting <= 1; is_waiting++) {
        for (size_t i = 0; i < sizeof SESSIONS / sizeof *SESSIONS; i++)
            acknowledge(SESSIONS[i], name.text);
        snprintf(wrong, sizeof wrong, "%s0", name.text);
        acknowledge(MEMBER_A, wrong);
        wrong[BARRIER_NAME_CHARS - 1] = '\0';
        acknowledge(MEMBER_A, wrong);
        acknowledge(MEMBER_A, "");
        acknowledge(MEMBER_A, "0000000000000000");
        if (!is_waiting)
            WAIT_FOR(barrier, 5000, &outcome, MEMBER_A, "1 200", MEMBER_B, "1 200");
    }
    acknowledge(MEMBER_B, name.text);
    cr_assert_eq(outcome.calls, 0);
    acknowledge(MEMBER_A, other_name.text);
    cr_assert_eq(outcome.calls, 0, "of the other barrier");
    expect_over(&other);
    acknowledge(MEMBER_A, name.text);
    expect_over(&outcome);
}

Test(barrier, a_registry_that_can_not_be)
{
    static const struct redis_reply SESSION = {.type = REPLY_STRING, .text = {MEMBER_A, 32}};
    static const struct redis_reply SHORT = {.type = REPLY_STRING, .text = {MEMBER_A, 31}};
    static const struct redis_reply LONG = {.type = REPLY_STRING, .text = {MEMBER_A "a", 33}};
    static const struct redis_reply HELD = {.type = REPLY_STRING, .text = {"1 200", 5}};
    static const struct redis_reply ENDLESS = {.type = REPLY_STRING,
                                               .text = {"1111111111111111111111111111111111111111111 200", 47}};
    static const struct redis_reply NIL = {.type = REPLY_NIL}, NUMBER = {.type = REPLY_INTEGER, .integer = 1};
    static const struct redis_reply *const CASES[][3] = {
        {&SESSION, NULL}, {&SHORT, &HELD},     {&LONG, &HELD},
        {&NUMBER, &HELD}, {&NIL, &HELD},       {&SESSION, &ENDLESS},
        {&SESSION, &NIL}, {&SESSION, &NUMBER}, {&SESSION, &HELD, &SESSION},
    };
    struct barrier_name name;
    struct outcome outcome = {0};
    struct barrier *barrier;

    make_connection_old();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct redis_reply registry = {.type = REPLY_ARRAY, .items = CASES[i]};

        while (registry.count < 3 && CASES[i][registry.count])
            registry.count++;
        barrier = begin(&name);
        cr_expect_not(barrier_wait(barrier, 100, &registry, on_done, &outcome), "%zu", i);
        barrier_drop(barrier);
    }
    for (size_t i = 0; i < 3; i++) {
        barrier = begin(&name);
        cr_expect_not(
            barrier_wait(barrier, 100, (const struct redis_reply *const[]){NULL, &NIL, &HELD}[i], on_done, &outcome));
        barrier_drop(barrier);
    }
    test_loop_for(&fixture.loop, 20);
    cr_assert_eq(outcome.calls, 0);
}

/* A wait computed from nonsense would be too short, or never end. */
Test(barrier, a_longest_lease_that_can_not_be)
{
    static const int64_t LEASES[] = {-1, INT64_MIN, INT64_MAX, 147573952589676413, LEASE_MS_MAX + 1};
    struct outcome outcome = {0};
    struct barrier_name name;

    make_connection_old();
    for (size_t i = 0; i < sizeof LEASES / sizeof *LEASES; i++) {
        struct barrier *barrier = begin(&name);

        cr_expect_not(wait_for(barrier, LEASES[i], (const char *const[]){MEMBER_A, "1 200"}, 2, &outcome), "%zu", i);
        barrier_drop(barrier);
    }
    test_loop_for(&fixture.loop, 20);
    cr_assert_eq(outcome.calls, 0);
}

Test(barrier, many_at_once)
{
    static struct outcome outcomes[MANY];
    static struct barrier_name names[MANY];
    uint64_t began_ns;

    make_connection_old();
    began_ns = clock_boot_ns();
    for (size_t i = 0; i < MANY; i++)
        WAIT_FOR(begin(&names[i]), (int64_t)(100 + i % 7 * 20), &outcomes[i], MEMBER_A, "1 200", MEMBER_B, "1 200");
    for (size_t i = 0; i < MANY; i++)
        acknowledge(MEMBER_A, names[i].text);
    for (size_t i = 0; i < MANY; i += 3)
        acknowledge(MEMBER_B, names[i].text);
    for (size_t i = 0; i < MANY; i++) {
        if (!outcomes[i].is_done)
            until_done(&outcomes[i]);
        cr_assert(outcomes[i].is_over && outcomes[i].calls == 1);
        if (i % 3 != 0)
            cr_assert_geq(outcomes[i].at_ns - began_ns, wait_ns(100 + i % 7 * 20), "%zu", i);
    }
}

static struct outcome second;

/* Begins another one in the completion of the first. */
static void done_and_begin(void *arg, bool is_over)
{
    struct barrier_name name;

    on_done(arg, is_over);
    WAIT_FOR(begin(&name), 100, &second, MEMBER_A, "1 200");
}

Test(barrier, an_end_that_begins_another)
{
    static const struct redis_reply ITEMS[] = {{.type = REPLY_STRING, .text = {MEMBER_A, 32}},
                                               {.type = REPLY_STRING, .text = {"1 200", 5}}};
    const struct redis_reply *const pointers[] = {&ITEMS[0], &ITEMS[1]};
    const struct redis_reply registry = {.type = REPLY_ARRAY, .count = 2, .items = pointers};
    struct outcome first = {0};
    struct barrier_name name;

    make_connection_old();
    cr_assert(barrier_wait(begin(&name), 50, &registry, done_and_begin, &first));
    until_done(&second);
    expect_over(&first);
    expect_over(&second);
    cr_assert_geq(second.at_ns - first.at_ns, wait_ns(100));
}

Test(barrier, the_connection_is_lost)
{
    struct outcome waiting = {0}, later = {0};
    struct barrier_name name, later_name;
    struct barrier *not_waiting;

    make_connection_old();
    WAIT_FOR(begin(&name), 5000, &waiting, MEMBER_A, "1 200");
    not_waiting = begin(&later_name);
    barriers_fail(barriers());
    cr_assert_eq(waiting.calls, 1);
    cr_assert_not(waiting.is_over);
    acknowledge(MEMBER_A, name.text);
    cr_assert_eq(waiting.calls, 1);
    /* The other's script has not been answered, so its call decides. */
    acknowledge(MEMBER_A, later_name.text);
    WAIT_FOR(not_waiting, 5000, &later, MEMBER_A, "1 200");
    expect_over(&later);
    barriers_fail(barriers());
    cr_assert_eq(later.calls, 1);
    cr_assert_eq(metric_values[METRIC_BARRIER_FAILED], 1);
}

Test(barrier, the_store_is_closed)
{
    struct outcome outcomes[3] = {0};
    struct barrier_name name;

    make_connection_old();
    for (size_t i = 0; i < 3; i++)
        WAIT_FOR(begin(&name), 10000, &outcomes[i], MEMBER_A, "1 200");
    fixture_close_store();
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(outcomes[i].calls, 1);
        cr_expect_not(outcomes[i].is_over);
    }
}

Test(barrier, without_a_membership_nobody_is_asked_to_acknowledge)
{
    struct barrier_name name;
    struct barrier *barrier = begin(&name);

    cr_assert(text_equal(barrier_member(barrier), TEXT("-")));
    barrier_drop(barrier);
}

/* Forbidden moves */

static struct barrier *begin_waiting(struct outcome *outcome)
{
    struct barrier_name name;
    struct barrier *barrier = begin(&name);

    WAIT_FOR(barrier, 5000, outcome, MEMBER_A, "1 5000");
    cr_assert_eq(outcome->calls, 0);
    return barrier;
}

Test(barrier, waiting_twice_ends_the_process, .signal = SIGABRT)
{
    struct outcome first = {0}, again = {0};
    struct barrier *barrier = begin_waiting(&first);

    (void)!wait_for(barrier, 5000, NULL, 0, &again);
}

Test(barrier, dropping_one_that_waits_ends_the_process, .signal = SIGABRT)
{
    struct outcome outcome = {0};

    barrier_drop(begin_waiting(&outcome));
}

Test(barrier, in_a_release_one_that_is_used_wrongly_promises_nothing)
{
    struct outcome first = {0}, again = {0};
    struct barrier *barrier = begin_waiting(&first);

    machine_set_fatal(false);
    cr_assert_not(wait_for(barrier, 5000, NULL, 0, &again));
    barrier_drop(barrier);
    cr_assert_eq(barriers_left_ns(barriers()), 0);
    cr_assert_eq(first.calls + again.calls, 0);
}
