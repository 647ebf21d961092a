/* Lowering the longest lease, over a real Redis: by commands and nodes alike, whatever becomes of the connection. */
#include "lease/lower.h"
#include "base/clock.h"
#include "deadline.h"
#include "lease/barrier.h"
#include "lease/lease.h"
#include "engine/store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(lower, .init = fixture_start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

#define NS_PER_MS UINT64_C(1000000)
#define MEMBER "0123456789abcdef0123456789abcdef"

enum { HELD_BYTES = 64 };

struct lower_answer {
    unsigned calls;
    bool is_done;
    enum lease_lowered result;
    struct lease_lowering found;
};

static void done(void *arg, enum lease_lowered result, const struct lease_lowering *found)
{
    *(struct lower_answer *)arg = (struct lower_answer){((struct lower_answer *)arg)->calls + 1, true, result, *found};
}

static uint64_t wait_ns(uint64_t lease_ms)
{
    return (lease_ms * 125 / 100 + 50) * NS_PER_MS;
}

static void begin(struct lower_answer *answer, int64_t lease_ms)
{
    lease_lower(store_lease(fixture.store), lease_ms, done, answer);
    cr_assert_not(answer->is_done, "inside the call");
}

static void expect(struct lower_answer *answer, enum lease_lowered result)
{
    cr_assert(test_loop_until_set(&fixture.loop, &answer->is_done, PATIENCE_MS));
    cr_expect_eq(answer->result, result, "%d", answer->result);
    cr_expect_eq(answer->calls, 1);
}

static void expect_longest(const char *wanted)
{
    char longest[32];

    redis_server_ask(&fixture.server, longest, sizeof longest, "GET", "t:lease_max", NULL);
    cr_expect_str_eq(longest, wanted);
}

static void have(const char *longest, const char *held)
{
    redis_server_tell(&fixture.server, "SET", "t:lease_max", longest, NULL);
    if (held)
        redis_server_tell(&fixture.server, "HSET", "t:nodes", MEMBER, held, NULL);
}

static bool is_marked(void *arg)
{
    char held[HELD_BYTES];

    (void)arg;
    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", MEMBER, NULL);
    return held[0] == '?';
}

static void until_marked(void)
{
    cr_assert(test_loop_until(&fixture.loop, is_marked, NULL, PATIENCE_MS));
}

/* What another Redis granted before this connection may be valid, and nobody who has it need be registered here. */
Test(lower, waits_although_nobody_is_registered)
{
    struct lower_answer answer = {0};
    uint64_t began_ns = clock_boot_ns();

    have("600", NULL);
    lease_fence(store_lease(fixture.store))->connected_ns = began_ns;
    begin(&answer, 100);
    expect(&answer, LEASE_LOWERED);
    cr_expect_geq(clock_boot_ns() - began_ns, wait_ns(600));
    cr_expect_eq(answer.found.longest_ms, 600);
    expect_longest("100");
}

Test(lower, waits_for_a_member_that_was_marked_before)
{
    struct lower_answer answer = {0};
    uint64_t began_ns;

    have("600", "?ffffffffffffffff 600 3");
    lease_fence(store_lease(fixture.store))->connected_ns = 1;
    began_ns = clock_boot_ns();
    begin(&answer, 100);
    expect(&answer, LEASE_LOWERED);
    cr_expect_geq(clock_boot_ns() - began_ns, wait_ns(600));
    expect_longest("100");
    cr_expect_not(is_marked(NULL));
}

Test(lower, does_not_wait_if_no_lease_is_longer)
{
    struct lower_answer answer = {0};

    have("10000", "1 10000 3");
    begin(&answer, 10000);
    expect(&answer, LEASE_NOT_LONGER);
    cr_expect_eq(answer.found.longest_ms, 10000);
    cr_expect_not(is_marked(NULL));
    expect_longest("10000");
}

/* By another command, which has removed the member too. What is lowered is what the other has left. */
Test(lower, somebody_else_lowers_it_meanwhile)
{
    static const struct {
        int64_t asked_ms;
        const char *left;
        enum lease_lowered result;
        int64_t found_ms;
    } CASES[] = {{200, "100", LEASE_NOT_LONGER, 100}, {100, "200", LEASE_LOWERED, 200}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lower_answer answer = {0};

        have("600", "1 600 3");
        begin(&answer, CASES[i].asked_ms);
        until_marked();
        have(CASES[i].left, NULL);
        redis_server_tell(&fixture.server, "HDEL", "t:nodes", MEMBER, NULL);
        expect(&answer, CASES[i].result);
        cr_expect_eq(answer.found.longest_ms, CASES[i].found_ms);
        expect_longest("100");
    }
}

/* The next Redis may be another one, which knows nothing of the marks. */
Test(lower, the_connection_is_lost_while_it_waits)
{
    struct lower_answer answer = {0};

    have("10000", "1 10000 3");
    begin(&answer, 100);
    until_marked();
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    expect(&answer, LEASE_LOWER_FAILED);
    expect_longest("10000");
}

static bool is_waiting(void *lease)
{
    return barriers_left_ns(lease_barriers(lease)) > 0;
}

/* The same if the next one can be reached at once, and knows of the mark: the wait was for another one's leases. */
Test(lower, another_redis_follows_while_it_waits)
{
    struct lease *lease = store_lease(fixture.store);
    struct lower_answer answer = {0};

    have("10000", "1 10000 3");
    begin(&answer, 100);
    cr_assert(test_loop_until(&fixture.loop, is_waiting, lease, PATIENCE_MS));
    lease_on_connection(lease, false);
    expect(&answer, LEASE_LOWER_FAILED);
    cr_expect(is_marked(NULL));
    expect_longest("10000");
}

Test(lower, the_store_is_closed_while_it_waits)
{
    struct lower_answer answer = {0};

    have("10000", "1 10000 3");
    begin(&answer, 100);
    until_marked();
    fixture_close_store();
    cr_expect_eq(answer.calls, 1);
    cr_expect_eq(answer.result, LEASE_LOWER_FAILED);
    expect_longest("10000");
}

Test(lower, what_redis_holds_makes_no_sense)
{
    static const char *const LONGEST[] = {"long", "147573952589676413", "10001", "-1", "1e3", "0x10", "nan", ""};

    for (size_t i = 0; i < sizeof LONGEST / sizeof *LONGEST; i++) {
        struct lower_answer answer = {0};

        have(LONGEST[i], NULL);
        begin(&answer, 100);
        expect(&answer, LEASE_LOWER_MALFORMED);
        cr_expect_eq(answer.found.longest_ms, -1, "%s", LONGEST[i]);
        expect_longest(LONGEST[i]);
    }
}

Test(lower, what_redis_holds_ceases_to_make_sense)
{
    struct lower_answer answer = {0};

    have("600", "1 600 3");
    begin(&answer, 100);
    until_marked();
    have("long", NULL);
    expect(&answer, LEASE_LOWER_MALFORMED);
    cr_expect_eq(answer.found.longest_ms, -1);
    expect_longest("long");
}

Test(lower, a_member_that_cannot_be)
{
    struct lower_answer answer = {0};

    have("600", NULL);
    redis_server_tell(&fixture.server, "HSET", "t:nodes", "nobody", "1 600 3", NULL);
    begin(&answer, 100);
    expect(&answer, LEASE_LOWER_MALFORMED);
    cr_expect_eq(answer.found.longest_ms, 600);
    expect_longest("600");
}
