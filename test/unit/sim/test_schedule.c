/* The queue of events, and the numbers of a seed. */
#include "deadline.h"
#include "kernel.h"
#include "kernel_internal.h"
#include "schedule.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 64, RUNS_MAX = 4096 };

static struct mark {
    struct sim_event event;
    uint64_t at_ns; /* 0: it is not to happen */
} marks[EVENTS];
static unsigned happened[RUNS_MAX], happenings;

static void on_event(struct sim_event *event)
{
    struct mark *mark = (struct mark *)event;

    cr_assert_eq(sim_now_ns(), mark->at_ns);
    cr_assert_lt(happenings, RUNS_MAX);
    happened[happenings++] = (unsigned)(mark - marks);
    mark->at_ns = 0;
}

static void begin(uint64_t seed)
{
    sim_kernel_enter();
    sim_schedule_begin(seed);
    memset(marks, 0, sizeof marks);
    for (unsigned i = 0; i < EVENTS; i++)
        marks[i].event.run = on_event;
    happenings = 0;
}

TestSuite(sim_schedule, .timeout = TEST_WITHIN_S);

static void expect_at(unsigned i, uint64_t at_ns)
{
    marks[i].at_ns = at_ns;
    sim_event_at(&marks[i].event, at_ns);
}

static void run_all(void)
{
    while (sim_next_ns() != UINT64_MAX)
        cr_assert(sim_step(sim_next_ns()));
}

Test(sim_schedule, each_event_happens_once_at_its_time)
{
    begin(1);
    for (unsigned i = 0; i < EVENTS; i++)
        expect_at(i, sim_now_ns() + sim_draw_below(1000));
    run_all();
    cr_assert_eq(happenings, EVENTS);
    for (unsigned i = 0; i < EVENTS; i++)
        cr_assert_eq(marks[i].at_ns, 0);
}

Test(sim_schedule, a_time_that_has_passed_is_now)
{
    begin(1);
    sim_kernel_spend_ns(1000);
    marks[0].at_ns = sim_now_ns();
    sim_event_at(&marks[0].event, sim_now_ns() - 500);
    cr_assert_eq(sim_next_ns(), sim_now_ns());
    run_all();
    cr_assert_eq(happenings, 1);
}

Test(sim_schedule, time_goes_no_further_than_asked)
{
    uint64_t began_ns;

    begin(1);
    began_ns = sim_now_ns();
    cr_assert_not(sim_step(began_ns + 10));
    cr_assert_eq(sim_now_ns(), began_ns + 10);
    expect_at(0, began_ns + 100);
    cr_assert_not(sim_step(began_ns + 99));
    cr_assert_eq(happenings, 0);
    cr_assert(sim_step(began_ns + 1000));
    cr_assert_eq(sim_now_ns(), began_ns + 100);
    cr_assert_not(sim_step(0));
    cr_assert_eq(sim_now_ns(), began_ns + 100);
}

/* What becomes of a dozen events of one instant. */
static void order_of(uint64_t seed, unsigned ret_order[12])
{
    uint64_t at_ns;

    begin(seed);
    at_ns = sim_now_ns() + 5;
    for (unsigned i = 0; i < 12; i++)
        expect_at(i, at_ns);
    run_all();
    cr_assert_eq(happenings, 12);
    memcpy(ret_order, happened, 12 * sizeof *ret_order);
}

Test(sim_schedule, the_seed_draws_the_order_within_an_instant)
{
    unsigned first[12] = {0}, again[12], orders = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        unsigned before[12];

        memcpy(before, first, sizeof before);
        order_of(seed, first);
        order_of(seed, again);
        cr_assert_arr_eq(first, again, sizeof first);
        orders += seed > 0 && memcmp(before, first, sizeof first) != 0;
    }
    cr_assert_eq(orders, 19);
}

static void step_of_walk(void)
{
    const unsigned i = (unsigned)sim_draw_below(EVENTS);

    switch (sim_draw_below(4)) {
    case 0:
        sim_event_cancel(&marks[i].event);
        marks[i].at_ns = 0;
        break;
    case 1:
        if (sim_next_ns() != UINT64_MAX)
            cr_assert(sim_step(sim_next_ns()));
        break;
    default:
        expect_at(i, sim_now_ns() + sim_draw_below(50));
    }
}

static uint64_t earliest(void)
{
    uint64_t at_ns = UINT64_MAX;

    for (unsigned i = 0; i < EVENTS; i++)
        if (marks[i].at_ns && marks[i].at_ns < at_ns)
            at_ns = marks[i].at_ns;
    return at_ns;
}

Test(sim_schedule, events_are_moved_and_cancelled)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        begin(seed);
        for (unsigned step = 0; step < 2000; step++) {
            step_of_walk();
            cr_assert_eq(sim_next_ns(), earliest(), "seed %lu, step %u", (unsigned long)seed, step);
            for (unsigned i = 0; i < EVENTS; i++)
                cr_assert_eq(sim_event_waits(&marks[i].event), marks[i].at_ns != 0);
        }
        run_all();
        cr_assert_eq(earliest(), UINT64_MAX);
    }
}

Test(sim_schedule, a_new_beginning_forgets_events)
{
    begin(1);
    expect_at(0, sim_now_ns() + 5);
    sim_schedule_begin(1);
    cr_assert_eq(sim_next_ns(), UINT64_MAX);
    cr_assert_not(sim_event_waits(&marks[0].event));
}

Test(sim_schedule, a_seed_draws_the_same_numbers)
{
    unsigned char bytes[2][37];
    uint64_t numbers[2][8];
    bool is_least = false, is_most = false;

    for (unsigned i = 0; i < 2; i++) {
        begin(7);
        for (unsigned j = 0; j < 8; j++)
            numbers[i][j] = sim_draw();
        sim_draw_bytes(bytes[i], sizeof bytes[i]);
    }
    cr_assert_arr_eq(numbers[0], numbers[1], sizeof numbers[0]);
    cr_assert_arr_eq(bytes[0], bytes[1], sizeof bytes[0]);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t drawn = sim_draw_between(3, 6);

        cr_assert(drawn >= 3 && drawn <= 6);
        is_least |= drawn == 3;
        is_most |= drawn == 6;
    }
    cr_assert(is_least && is_most);
    sim_schedule_begin(8);
    cr_assert_neq(sim_draw(), numbers[0][0]);
}
