/* What is known of Redis' clock while this machine's clock, and Redis', are set. */
#include "redis/redis_clock.h"

#include "base/clock.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { HOUR_MS = 3600000, UNSURE_MS = 1000 };

TestSuite(redis_clock, .fini = leak_guard);

static int64_t zero_ms; /* this machine's clock minus that of deadlines */

static int64_t boot_ms(void)
{
    return (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
}

static int64_t wall_ms(void)
{
    return zero_ms + boot_ms();
}

static void begin(void)
{
    zero_ms = (int64_t)1700000000 * 1000;
    clock_replace_wall_for_test(wall_ms);
}

/* Redis' clock is that far from the one that this machine had when it began. */
static void tell(struct redis_clock *clock, int64_t redis_ms)
{
    const struct redis_clock_question question = redis_clock_question();

    redis_clock_told(clock, &question, (int64_t)1700000000 * 1000 + boot_ms() + redis_ms);
}

static void expect_ahead(const struct redis_clock *clock, int64_t expected_ms)
{
    int64_t ahead_ms = 0;

    cr_assert(redis_clock_ahead(clock, &ahead_ms));
    cr_expect(ahead_ms >= expected_ms - UNSURE_MS && ahead_ms <= expected_ms + UNSURE_MS, "%lld, not %lld",
              (long long)ahead_ms, (long long)expected_ms);
}

Test(redis_clock, is_unknown_until_redis_tells_it, .init = begin)
{
    struct redis_clock clock = {0};
    int64_t ahead_ms = 7;

    cr_expect_not(redis_clock_is_known(&clock) || redis_clock_ahead(&clock, &ahead_ms));
    zero_ms += HOUR_MS;
    cr_expect_not(redis_clock_is_known(&clock) || redis_clock_ahead(&clock, &ahead_ms));
    cr_expect_eq(ahead_ms, 7);
    tell(&clock, 5 * HOUR_MS);
    expect_ahead(&clock, 4 * HOUR_MS);
}

Test(redis_clock, is_unknown_while_nobody_says_which_clock_was_set, .init = begin)
{
    struct redis_clock clock = {0};
    int64_t ahead_ms;

    tell(&clock, 0);
    expect_ahead(&clock, 0);
    zero_ms -= HOUR_MS;
    cr_expect_not(redis_clock_is_known(&clock) || redis_clock_ahead(&clock, &ahead_ms));
    tell(&clock, -HOUR_MS); /* with Redis' */
    expect_ahead(&clock, 0);
    cr_expect(llabs(redis_clock_ms(&clock) - wall_ms()) <= UNSURE_MS);
    zero_ms += HOUR_MS;
    cr_expect_not(redis_clock_is_known(&clock));
    tell(&clock, -HOUR_MS); /* alone */
    expect_ahead(&clock, -HOUR_MS);
    tell(&clock, HOUR_MS); /* Redis' alone */
    expect_ahead(&clock, HOUR_MS);
}

/* The answer may be of before or after that. */
Test(redis_clock, an_answer_during_which_the_clock_was_set_says_nothing, .init = begin)
{
    struct redis_clock clock = {0};

    tell(&clock, 0);
    const struct redis_clock_question question = redis_clock_question();
    zero_ms += HOUR_MS;
    redis_clock_told(&clock, &question, wall_ms() - HOUR_MS);
    cr_expect_not(redis_clock_is_known(&clock));
    tell(&clock, HOUR_MS);
    expect_ahead(&clock, 0);
}

Test(redis_clock, an_answer_that_took_long_changes_nothing_that_it_allows, .init = begin)
{
    const int64_t long_ms = 60000;
    struct redis_clock clock = {0};

    tell(&clock, 0);
    struct redis_clock_question question = redis_clock_question();
    question.sent_ns -= (uint64_t)long_ms * CLOCK_NS_PER_MS;
    redis_clock_told(&clock, &question, wall_ms() - 2 * UNSURE_MS);
    expect_ahead(&clock, 0);
    redis_clock_told(&clock, &question, wall_ms() + HOUR_MS);
    expect_ahead(&clock, HOUR_MS + long_ms / 2);
}
