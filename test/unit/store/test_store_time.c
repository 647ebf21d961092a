/* What a node knows of the store's time between heartbeats, and what it makes of the answers. */
#include "base/clock.h"
#include "lease/store_time.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(store_time);

enum { TOLD_MS = 1000000, FAR_MS = 600000 };

static uint64_t ns(uint64_t ms)
{
    return ms * CLOCK_NS_PER_MS;
}

/* As Redis says it while its clock is right, at these moments of this node's clock. */
static struct store_time_told told_at(int64_t ms, uint64_t sent_ms, uint64_t read_ms)
{
    return (struct store_time_told){{ms, ms, ms, ms, "-"}, ns(sent_ms), ns(read_ms)};
}

static bool tell(struct store_time *time, int64_t ms, uint64_t sent_ms, uint64_t read_ms)
{
    struct store_time_told told = told_at(ms, sent_ms, read_ms);

    return store_time_told(time, &told, time->known.said.clock_ms ? STORE_TIME_OWN : STORE_TIME_FREE);
}

/* As Redis says it when its clock was set by that much, and nobody has told it better. */
static struct store_time_told told_by_clock(int64_t ms, uint64_t at_ms, int64_t set_by_ms, int64_t kept_ms)
{
    return (struct store_time_told){
        {ms + set_by_ms, ms + set_by_ms, ms + set_by_ms, kept_ms, "-"}, ns(at_ms), ns(at_ms + 10)};
}

static void expect_says(const struct store_time *time, uint64_t now_ms, const char *wanted)
{
    char storage[2][80], said[200];
    struct buf measured, basis;

    buf_init_fixed(&measured, storage[0], sizeof storage[0]);
    buf_init_fixed(&basis, storage[1], sizeof storage[1]);
    store_time_print(time, ns(now_ms), &measured, &basis);
    snprintf(said, sizeof said, "%.*s, %.*s", TEXT_ARG(buf_text(&measured)), TEXT_ARG(buf_text(&basis)));
    cr_expect_str_eq(said, wanted);
}

Test(store_time, nothing_is_known_before_it_was_told)
{
    struct store_time time = {0};

    cr_expect_eq(store_time_least(&time, ns(5000)), 0);
    cr_expect_eq(store_time_most(&time, ns(5000)), 0);
    cr_expect_not(store_time_bounds(&time, ns(5000)).is_known);
    expect_says(&time, 5000, "0, - -");
    cr_expect_not(tell(&time, TOLD_MS, 10, 20));
    cr_expect_eq(store_time_least(&time, ns(20)), TOLD_MS);
}

/* The answer was right at some moment between question and answer, and this node's clock is 10 % fast or slow since. */
Test(store_time, lies_between_what_a_fast_and_a_slow_clock_say)
{
    struct store_time time = {0};

    cr_assert_not(tell(&time, TOLD_MS, 100, 150));
    cr_expect_eq(store_time_least(&time, ns(150)), TOLD_MS);
    cr_expect_eq(store_time_least(&time, ns(150 + 1100)), TOLD_MS + 1000);
    cr_expect_eq(store_time_most(&time, ns(100)), TOLD_MS + 1);
    cr_expect_eq(store_time_most(&time, ns(100 + 900)), TOLD_MS + 1000 + 1);
    expect_says(&time, 1000, "1000772 1001001 0 0, - fresh");
}

Test(store_time, a_clock_that_was_set_forward_is_seen_and_one_that_is_right_is_not)
{
    struct store_time time = {0};

    cr_expect_not(tell(&time, TOLD_MS, 0, 10));
    cr_expect_not(tell(&time, TOLD_MS + 60000, 60000, 60010));
    cr_expect_not(tell(&time, TOLD_MS + 121000, 120000, 120010), "a second is in the margin");
    cr_expect(tell(&time, TOLD_MS + 300000, 121000, 121010));
    cr_expect_not(tell(&time, TOLD_MS + 301000, 122000, 122010), "it is seen once");
}

/* What the node says of it from then on: the time as it knows it, so far below or above Redis' clock. */
Test(store_time, a_clock_that_was_set_is_not_believed)
{
    static const int64_t SET_BY_MS[] = {FAR_MS, -FAR_MS};

    for (size_t i = 0; i < 2; i++) {
        struct store_time_told told = told_at(TOLD_MS, 0, 10);
        struct store_time time = {0};

        cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
        told = told_by_clock(TOLD_MS + 250, 250, SET_BY_MS[i], TOLD_MS + 200);
        cr_expect_eq(store_time_told(&time, &told, STORE_TIME_OWN), SET_BY_MS[i] > 0, "the cache is in doubt");
        cr_expect_eq(time.known.said.first_ms, TOLD_MS + 218);
        cr_expect_eq(time.known.said.last_ms, TOLD_MS + 289);
        /* As Redis says it with the next one, which told it. */
        told = told_by_clock(TOLD_MS + 500, 500, SET_BY_MS[i], TOLD_MS + 468);
        told.said.first_ms = TOLD_MS + 468;
        told.said.last_ms = TOLD_MS + 539;
        cr_expect_not(store_time_told(&time, &told, STORE_TIME_OWN), "once, not with each heartbeat");
        cr_expect_eq(time.known.said.first_ms, TOLD_MS + 468);
        cr_expect_eq(time.known.said.last_ms, TOLD_MS + 539, "it grows no wider");
        /* And put right: nothing is left. */
        told = told_by_clock(TOLD_MS + 750, 750, 0, TOLD_MS + 700);
        told.said.first_ms -= SET_BY_MS[i];
        told.said.last_ms -= SET_BY_MS[i];
        cr_expect_not(store_time_told(&time, &told, STORE_TIME_OWN));
        cr_expect_eq(time.known.said.first_ms, TOLD_MS + 750);
        cr_expect_eq(time.known.said.last_ms, TOLD_MS + 750);
    }
}

/* What others have found out of a clock that was set: within what this node knows, it counts. */
Test(store_time, what_others_know_narrows_it)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 0);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
    told = told_by_clock(TOLD_MS + 5000, 5000, FAR_MS, TOLD_MS + 4900);
    told.said.first_ms = TOLD_MS + 4990;
    told.said.last_ms = TOLD_MS + 5020;
    cr_expect(store_time_told(&time, &told, STORE_TIME_OWN));
    cr_expect_eq(time.known.said.first_ms, TOLD_MS + 4990);
    cr_expect_eq(time.known.said.last_ms, TOLD_MS + 5020);
}

/* A heartbeat that comes once in five seconds cannot tell whether a clock that was wrong by 0.4 s was put right. */
Test(store_time, a_clock_that_may_be_right_again_may_be_wrong)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 0);
    struct store_time time = {0};

    told.said.clock_ms -= 400;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
    told = told_at(TOLD_MS + 5000, 5000, 5000);
    told.said.first_ms = told.said.last_ms = TOLD_MS + 5400;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_OWN));
    cr_expect_eq(time.known.said.first_ms, TOLD_MS + 5000);
    cr_expect_eq(time.known.said.last_ms, TOLD_MS + 5400);
}

Test(store_time, an_answer_that_took_long_says_nothing_new)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 0);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
    told = told_at(TOLD_MS + 1500, 500, 1501);
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_OWN));
    cr_expect_eq(time.known.said.clock_ms, TOLD_MS);
}

/* What it was then is known too badly to be confirmed by others. */
Test(store_time, who_has_heard_only_answers_that_took_long_has_heard_nothing)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 1001);
    struct store_time time = {0};

    told.said.kept_ms = TOLD_MS - 150;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    expect_says(&time, 5000, "0, - -");
    cr_expect_not(store_time_bounds(&time, ns(5000)).is_known);
}

Test(store_time, while_nothing_is_scheduled_it_is_the_clock)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 10);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
    told = told_by_clock(TOLD_MS, 250, -FAR_MS, 0);
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_FREE));
    cr_expect_eq(store_time_least(&time, ns(260)), TOLD_MS - FAR_MS);
}

/* Who was not told for a minute may know less than others. */
Test(store_time, what_was_told_long_ago_is_not_fresh)
{
    struct store_time time = {0};

    cr_assert_not(tell(&time, TOLD_MS, 0, 0));
    expect_says(&time, 60000, "1054545 1066667 0 0, - fresh");
    expect_says(&time, 60001, "1054546 1066668 0 0, - -");
}

Test(store_time, a_node_that_has_just_started_waits_for_others_and_then_says_what_it_has_heard)
{
    struct store_time_told told = told_by_clock(TOLD_MS, 0, FAR_MS, TOLD_MS);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    expect_says(&time, 3010, "0, - -");
    expect_says(&time, 3011, "1602728 1603346 0 0, - 1000000");
    told = told_by_clock(TOLD_MS + 2900, 2900, FAR_MS, TOLD_MS);
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    expect_says(&time, 3011, "1602728 1603346 0 0, - 1000000");
    store_time_reconnected(&time);
    expect_says(&time, 3011, "0, - -");
}

/* All were stopped, and the clock was set back meanwhile; or it had been proved wrong before. */
Test(store_time, what_was_heard_is_not_before_what_was_kept_and_may_be_the_clock)
{
    struct store_time_told told = told_by_clock(TOLD_MS, 0, -FAR_MS, TOLD_MS);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    expect_says(&time, 3011, "402728 403346 600000 600000, - 1000000");
    time = (struct store_time){0};
    told = told_by_clock(TOLD_MS + FAR_MS, 0, 0, TOLD_MS);
    told.said.first_ms -= 30000;
    told.said.last_ms -= 29900;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    expect_says(&time, 3011, "1602728 1603346 -30000 0, - 1000000");
}

/* Its clock was set since it was heard: the node knows that as well as if it had been told for long. */
Test(store_time, what_was_heard_proves_a_clock_wrong_that_was_set_since)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 0);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    told = told_by_clock(TOLD_MS + 3250, 3250, FAR_MS, TOLD_MS);
    cr_expect(store_time_told(&time, &told, STORE_TIME_OWN));
    cr_expect_geq(time.known.said.first_ms, TOLD_MS + 3250 * 10 / 11);
    cr_expect_leq(time.known.said.last_ms, TOLD_MS + 3270 * 10 / 9);
}

Test(store_time, a_node_that_has_just_started_believes_what_others_have_come_up_to)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 10);
    struct store_time time = {0};

    told.said.kept_ms = TOLD_MS - 150;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    told = told_at(TOLD_MS + 250, 250, 260);
    told.said.kept_ms = TOLD_MS + 60;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    cr_expect_eq(store_time_least(&time, ns(260)), TOLD_MS + 250);
    expect_says(&time, 260, "1000250 1000262 0 0, - fresh");
}

/* Others keep a time, but far below what this node was told: the clock was set forward right before. */
Test(store_time, a_node_that_has_just_started_does_not_believe_what_others_do_not_come_up_to)
{
    struct store_time_told told = told_at(TOLD_MS + FAR_MS, 0, 10);
    struct store_time time = {0};

    told.said.kept_ms = TOLD_MS;
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    for (unsigned i = 1; i <= 20; i++) {
        told.sent_ns = told.read_ns = ns(i * 250);
        told.said.kept_ms = TOLD_MS + i * 250;
        cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
        cr_expect_eq(store_time_least(&time, told.read_ns), 0);
        expect_says(&time, i * 250 + 249, "0, - -");
    }
}

/* A clock is behind what was kept before, and nobody else keeps the time: what is heard is not confirmed by itself, and
 * after a while this node says that the time is what was kept. */
Test(store_time, a_node_that_has_just_started_alone_does_not_believe_a_clock_that_is_behind)
{
    struct store_time time = {0};

    for (unsigned i = 0; i < 20; i++) {
        struct store_time_told told = told_by_clock(TOLD_MS + i * 250, i * 250, -FAR_MS, TOLD_MS);

        expect_says(&time, i * 250,
                    i == 0           ? "0, - -"
                    : i * 250 < 3020 ? "0, - -"
                                     : "402945 403612 600000 600000, - 1000000");
        if (i * 250 >= 3020)
            break;
        cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
        cr_expect_eq(store_time_least(&time, told.read_ns), 0);
    }
}

/* Or the clock was set in between. */
Test(store_time, what_others_have_come_up_to_says_nothing_of_a_clock_that_was_set_since)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 10);
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    told = told_at(TOLD_MS + 250, 250, 260);
    told.said.first_ms = told.said.last_ms = told.said.clock_ms = TOLD_MS + FAR_MS;
    cr_expect(store_time_told(&time, &told, STORE_TIME_HEARD));
    cr_expect_eq(store_time_least(&time, ns(260)), 0);
}

Test(store_time, what_was_told_before_the_time_was_settled_does_not_count)
{
    struct store_time_told told = told_at(TOLD_MS + FAR_MS, 0, 10);
    struct store_time time = {0};
    struct store_time_bounds asked;
    struct store_time_span span;

    cr_assert_not(store_time_told(&time, &told, STORE_TIME_FREE));
    asked = store_time_bounds(&time, ns(100));
    told = told_at(TOLD_MS, 100, 110);
    snprintf(told.said.settlement, sizeof told.said.settlement, "a");
    span = store_time_span(&asked, &told.said, true, ns(110));
    cr_expect_eq(span.first_ms, TOLD_MS);
    cr_expect_eq(span.latest_ms, TOLD_MS);
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    cr_expect_eq(store_time_least(&time, ns(110)), 0);
    expect_says(&time, 3111, "1002728 1003346 0 0, a 1000000");
}

/* Its machine was frozen together with its clock, and others went on. */
Test(store_time, what_was_told_to_a_node_that_was_frozen_does_not_count)
{
    struct store_time_told told;
    struct store_time time = {0};

    cr_assert_not(tell(&time, TOLD_MS, 0, 10));
    told = told_at(TOLD_MS + FAR_MS, 250, 260);
    cr_expect(store_time_told(&time, &told, STORE_TIME_HEARD));
    cr_expect_eq(store_time_least(&time, ns(260)), 0);
    told = told_at(TOLD_MS + FAR_MS + 250, 500, 510);
    cr_expect_not(store_time_told(&time, &told, STORE_TIME_HEARD));
    cr_expect_eq(store_time_least(&time, ns(510)), TOLD_MS + FAR_MS + 250);
}

static void expect_span(const struct store_time *time, struct store_time_said said, bool waits, int64_t first_ms,
                        int64_t latest_ms)
{
    struct store_time_bounds asked = store_time_bounds(time, ns(1000));
    struct store_time_span span = store_time_span(&asked, &said, waits, ns(1000));

    cr_expect_eq(span.first_ms, first_ms, "first: %lld", (long long)span.first_ms);
    cr_expect_eq(span.latest_ms, latest_ms, "latest: %lld", (long long)span.latest_ms);
}

Test(store_time, an_answer_counts_only_within_what_the_node_knows)
{
    static const int64_t LEAST_MS = TOLD_MS + 909, MOST_MS = TOLD_MS + 1112, NOW_MS = TOLD_MS + 1000;
    struct store_time time = {0}, nothing = {0};

    cr_assert_not(tell(&time, TOLD_MS, 0, 0));
    expect_span(&time, (struct store_time_said){NOW_MS, NOW_MS, NOW_MS, TOLD_MS, "-"}, true, NOW_MS, MOST_MS);
    /* Redis' clock was set forward, and back. */
    expect_span(&time, (struct store_time_said){NOW_MS + FAR_MS, NOW_MS + FAR_MS, NOW_MS + FAR_MS, TOLD_MS, "-"}, true,
                LEAST_MS, NOW_MS + FAR_MS);
    expect_span(&time, (struct store_time_said){TOLD_MS, TOLD_MS, NOW_MS - FAR_MS, TOLD_MS, "-"}, true, LEAST_MS,
                MOST_MS);
    /* A heartbeat has proved that it was set. */
    expect_span(&time, (struct store_time_said){NOW_MS, NOW_MS + 50, NOW_MS + FAR_MS, TOLD_MS, "-"}, true, NOW_MS,
                NOW_MS + FAR_MS);
    /* Who knows nothing believes what was kept, unless it never will be told more; and accepts no sooner than by what
     * it has heard. */
    nothing.heard = time.known;
    expect_span(&nothing, (struct store_time_said){TOLD_MS, TOLD_MS, TOLD_MS, TOLD_MS, "-"}, true, TOLD_MS, MOST_MS);
    nothing = (struct store_time){0};
    expect_span(&nothing, (struct store_time_said){NOW_MS, NOW_MS, NOW_MS, TOLD_MS, "-"}, true, TOLD_MS, NOW_MS);
    expect_span(&nothing, (struct store_time_said){NOW_MS, NOW_MS, NOW_MS, TOLD_MS, "-"}, false, NOW_MS, NOW_MS);
    /* Redis' clock is behind what was kept, which has surely come. */
    expect_span(&nothing, (struct store_time_said){NOW_MS - FAR_MS, NOW_MS - FAR_MS, NOW_MS - FAR_MS, TOLD_MS, "-"},
                true, TOLD_MS, TOLD_MS);
}

/* A clock that was ahead when the last heartbeat came may have been put right since: until the next one, it counts. */
Test(store_time, a_clock_that_may_be_right_counts_until_the_next_heartbeat)
{
    struct store_time_told told = told_at(TOLD_MS, 0, 0);
    struct store_time time = {0};

    told.said.clock_ms += FAR_MS;
    cr_assert_not(store_time_told(&time, &told, STORE_TIME_FREE));
    expect_span(&time, (struct store_time_said){TOLD_MS + 1000, TOLD_MS + 1000, TOLD_MS + 1000, TOLD_MS, "-"}, true,
                TOLD_MS + 1000, TOLD_MS + FAR_MS + 1112);
}

Test(store_time, tells_how_far_it_is_ahead_of_the_clock)
{
    struct store_time_said said = {TOLD_MS, TOLD_MS + 50, TOLD_MS - 7, TOLD_MS, "-"};

    cr_expect_eq(store_time_ahead(&said), 7);
    said.clock_ms = TOLD_MS + 50;
    cr_expect_eq(store_time_ahead(&said), 0);
    said.clock_ms = TOLD_MS + 60;
    cr_expect_eq(store_time_ahead(&said), -10);
}

/* As Redis answers it, from a hash that anybody may have edited. */
static bool says(int64_t first_ms, int64_t last_ms, int64_t clock_ms, int64_t kept_ms, struct store_time_said *ret_said)
{
    const int64_t numbers[] = {first_ms, last_ms, clock_ms, kept_ms};
    struct redis_reply replies[5] = {[4] = {.type = REPLY_STRING, .text = TEXT("-")}};
    const struct redis_reply *items[5];

    for (size_t i = 0; i < 5; i++) {
        if (i < 4)
            replies[i] = (struct redis_reply){.type = REPLY_INTEGER, .integer = numbers[i]};
        items[i] = &replies[i];
    }
    return store_time_read(&(struct redis_reply){.type = REPLY_ARRAY, .count = 5, .items = items}, ret_said);
}

static void tell_how(struct store_time *time, const struct store_time_said *said, uint64_t at_ms,
                     enum store_time_how how)
{
    (void)!store_time_told(time, &(struct store_time_told){*said, ns(at_ms), ns(at_ms + 10)}, how);
}

static void expect_in_order(const struct store_time *time, uint64_t now_ms)
{
    const int64_t least_ms = store_time_least(time, ns(now_ms)), most_ms = store_time_most(time, ns(now_ms));

    cr_expect(least_ms <= most_ms);
    cr_expect_lt(store_time_bounds(time, ns(now_ms)).latest_ms, INT64_C(1) << 60);
}

/* Whatever it says, it is refused, or the node reckons with it: it must not end all nodes. */
Test(store_time, what_redis_says_is_no_time_or_can_be_reckoned_with)
{
    static const int64_t TIMES_MS[] = {INT64_MIN, INT64_MIN + 1023, -(INT64_C(1) << 53), -1,       0, 1,
                                       TOLD_MS,   INT64_C(1) << 53, INT64_MAX - 1023,    INT64_MAX};
    enum { TIMES = sizeof TIMES_MS / sizeof *TIMES_MS };
    struct store_time_said said, later;
    unsigned refused = 0;

    for (size_t i = 0; i < TIMES * TIMES * TIMES; i++) {
        const int64_t first_ms = TIMES_MS[i % TIMES], last_ms = TIMES_MS[i / TIMES % TIMES],
                      kept_ms = TIMES_MS[i / TIMES / TIMES];
        bool is_read = says(first_ms, last_ms, TOLD_MS, kept_ms, &said) &&
                       says(first_ms, last_ms, TOLD_MS + 5000, kept_ms, &later);

        refused += !is_read;
        for (enum store_time_how how = STORE_TIME_HEARD; is_read && how <= STORE_TIME_FREE; how++) {
            struct store_time time = {0};

            tell_how(&time, &said, 0, how);
            tell_how(&time, &later, 5000, STORE_TIME_OWN);
            tell_how(&time, &later, 5000, STORE_TIME_HEARD);
            expect_in_order(&time, 6000);
        }
    }
    cr_expect_gt(refused, 0);
    cr_expect_lt(refused, TIMES * TIMES * TIMES);
}
