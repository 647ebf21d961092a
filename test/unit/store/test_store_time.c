/* What a node knows of the store's time between heartbeats. */
#include "base/clock.h"
#include "store/store_time.h"

#include <criterion/criterion.h>

TestSuite(store_time);

enum { TOLD_MS = 1000000 };

static uint64_t ns(uint64_t ms)
{
    return ms * CLOCK_NS_PER_MS;
}

Test(store_time, nothing_is_known_before_it_was_told)
{
    struct store_time time = {0};

    cr_expect_eq(store_time_least(&time, ns(5000)), 0);
    cr_expect_eq(store_time_most(&time, ns(5000)), 0);
    cr_expect_not(store_time_told(&time, TOLD_MS, ns(10), ns(20)));
    cr_expect_eq(store_time_least(&time, ns(20)), TOLD_MS);
}

/* The answer was right at some moment between question and answer, and this node's clock is 10 % fast or slow since. */
Test(store_time, lies_between_what_a_fast_and_a_slow_clock_say)
{
    struct store_time time = {0};

    cr_assert_not(store_time_told(&time, TOLD_MS, ns(100), ns(150)));
    cr_expect_eq(store_time_least(&time, ns(150)), TOLD_MS);
    cr_expect_eq(store_time_least(&time, ns(150 + 1100)), TOLD_MS + 1000);
    cr_expect_eq(store_time_most(&time, ns(100)), TOLD_MS + 1);
    cr_expect_eq(store_time_most(&time, ns(100 + 900)), TOLD_MS + 1000 + 1);
}

Test(store_time, a_clock_that_was_set_forward_is_seen_and_one_that_is_right_is_not)
{
    struct store_time time = {0};

    cr_expect_not(store_time_told(&time, TOLD_MS, ns(0), ns(10)));
    cr_expect_not(store_time_told(&time, TOLD_MS + 60000, ns(60000), ns(60010)));
    cr_expect_not(store_time_told(&time, TOLD_MS + 121000, ns(120000), ns(120010)), "a second is in the margin");
    cr_expect(store_time_told(&time, TOLD_MS + 300000, ns(121000), ns(121010)));
    cr_expect_not(store_time_told(&time, TOLD_MS + 301000, ns(122000), ns(122010)), "it is told once");
}
