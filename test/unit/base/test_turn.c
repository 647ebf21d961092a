#include "base/turn.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/turn_clock.h"
#include "deadline.h"
#include "leak_guard.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(turn, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { HISTORY_BYTES = 64 };

static struct world {
    uv_loop_t loop;
    struct turn *turn;
    bool is_closed;
    char history[HISTORY_BYTES];
    size_t waiting, begun_in_slice;
} w;

static void note(const char *what)
{
    cr_assert_lt(strlen(w.history) + strlen(what), HISTORY_BYTES);
    snprintf(w.history + strlen(w.history), HISTORY_BYTES - strlen(w.history), "%s", what);
}

static size_t count_waiting(void *arg)
{
    (void)arg;
    return w.waiting;
}

static void do_slice(void *arg)
{
    (void)arg;
    note("s");
    turn_offer(w.turn);
    turn_finish(w.turn);
    w.waiting -= w.waiting < TURN_SLICE ? w.waiting : TURN_SLICE;
    w.waiting += w.begun_in_slice;
    w.begun_in_slice = 0;
}

static void before(void *arg)
{
    note(arg ? "(" : "[");
}

static void after(void *arg)
{
    note(arg ? ")" : "]");
}

static struct turn_part outer = {.before = before, .after = after};
static struct turn_part inner = {.before = before, .after = after, .arg = &inner};
static struct turn_part worker = {.waiting = count_waiting, .slice = do_slice};

static void open_turn(void)
{
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.turn = turn_create(&w.loop);
    turn_add(w.turn, &outer);
    turn_add(w.turn, &worker);
    turn_add(w.turn, &inner);
}

static void set(void *flag)
{
    *(bool *)flag = true;
}

static void close_turn(void)
{
    turn_close(w.turn, set, &w.is_closed);
    cr_assert_not(w.is_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&w.loop));
}

static void expect(const char *history)
{
    cr_assert_str_eq(w.history, history);
    w.history[0] = '\0';
}

Test(turn, a_slice_is_done_once_it_is_whole_and_the_rest_at_the_end)
{
    open_turn();
    turn_finish(w.turn);
    expect("");
    w.waiting = TURN_SLICE - 1;
    turn_offer(w.turn);
    expect("");
    w.waiting = 2 * TURN_SLICE + 1;
    turn_offer(w.turn);
    expect("[(s)][(s)]");
    cr_assert_eq(w.waiting, 1);
    turn_finish(w.turn);
    expect("[(s)]");
    cr_assert_eq(w.waiting, 0);
    close_turn();
}

/* Otherwise the loop would wait while it is pending. */
Test(turn, what_a_slice_begins_is_done_in_the_same_turn)
{
    open_turn();
    w.waiting = 1;
    w.begun_in_slice = 1;
    turn_finish(w.turn);
    expect("[(s)][(s)]");
    close_turn();
}

Test(turn, who_has_left_is_not_called)
{
    open_turn();
    list_remove(&inner.node);
    w.waiting = 1;
    turn_finish(w.turn);
    expect("[s]");
    close_turn();
}

static void on_due(uv_timer_t *timer)
{
    w.waiting = 1;
    uv_close((uv_handle_t *)timer, NULL);
}

static bool is_done(void *arg)
{
    (void)arg;
    return w.history[0] && w.waiting == 0;
}

/* Reads the clock once per turn and once per slice, and notes how long each turn took. */
Test(turn, has_a_clock)
{
    uint64_t first_ns = turn_clock_ns(), sum_ns;

    while (clock_boot_ns() - first_ns < CLOCK_NS_PER_MS)
        continue;
    cr_expect_eq(turn_clock_ns(), first_ns, "nothing has happened since");
    open_turn();
    w.waiting = 1;
    turn_finish(w.turn);
    cr_expect_geq(turn_clock_ns() - first_ns, CLOCK_NS_PER_MS, "a slice reads it");

    cr_expect_eq(histogram_count(HISTOGRAM_LOOP_LAG), 0);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    sum_ns = histograms[HISTOGRAM_LOOP_LAG].sum_ns;
    cr_expect_eq(histogram_count(HISTOGRAM_LOOP_LAG), 1);
    cr_expect_geq(sum_ns, CLOCK_NS_PER_MS, "from the first reading");
    uv_run(&w.loop, UV_RUN_NOWAIT);
    cr_expect_eq(histogram_count(HISTOGRAM_LOOP_LAG), 2);
    cr_expect_leq(histograms[HISTOGRAM_LOOP_LAG].sum_ns, clock_boot_ns() - first_ns, "turns do not overlap");
    close_turn();
}

static void on_busy(uv_timer_t *timer)
{
    uint64_t began_ns = clock_boot_ns();

    while (clock_boot_ns() - began_ns < 5 * CLOCK_NS_PER_MS)
        continue;
    uv_close((uv_handle_t *)timer, NULL);
    w.waiting = 1;
}

/* A timer asks nobody for the time, but runs after the loop has waited. */
Test(turn, measures_callbacks_that_do_not_ask)
{
    uv_timer_t timer;

    open_turn();
    cr_assert_eq(uv_timer_init(&w.loop, &timer), 0);
    /* One turn before, because the loop does not wait before a timer that is due when it starts. */
    cr_assert_eq(uv_timer_start(&timer, on_busy, PATIENCE_MS, 0), 0);
    cr_assert_neq(uv_run(&w.loop, UV_RUN_NOWAIT), 0);
    cr_assert_eq(uv_timer_start(&timer, on_busy, 1, 0), 0);
    cr_assert(test_loop_until(&w.loop, is_done, NULL, PATIENCE_MS));
    close_turn();
    cr_expect_geq(histograms[HISTOGRAM_LOOP_LAG].sum_ns, 5 * CLOCK_NS_PER_MS);
}

Test(turn, ends_with_each_turn_of_the_loop)
{
    uv_timer_t timer;

    open_turn();
    cr_assert_eq(uv_timer_init(&w.loop, &timer), 0);
    cr_assert_eq(uv_timer_start(&timer, on_due, 0, 0), 0);
    cr_assert(test_loop_until(&w.loop, is_done, NULL, PATIENCE_MS));
    expect("[(s)]");
    close_turn();
}
