/* Whose handshake is worked on when. */
#include "deadline.h"
#include "leak_guard.h"
#include "test_loop.h"

#include "http/handshake_internal.h"

#include <criterion/criterion.h>

TestSuite(http_handshake, .fini = leak_guard);

enum { COUNT = 4, LONGER_THAN_A_BUDGET_NS = 2 * 1000 * 1000 };

static uv_loop_t loop;
static struct handshakes handshakes;
static struct handshake all[COUNT];
static size_t order[2 * COUNT], worked;
static bool is_closed;

static void work_long(struct handshake *handshake)
{
    const uint64_t begun_ns = uv_hrtime();

    order[worked++] = (size_t)(handshake - all);
    while (uv_hrtime() - begun_ns < LONGER_THAN_A_BUDGET_NS)
        ;
    handshake_await(&handshakes, handshake);
}

static void start(size_t max)
{
    uv_loop_init(&loop);
    handshakes_init(&handshakes, &loop, max, work_long);
    for (size_t i = 0; i < COUNT; i++)
        handshake_init(&all[i]);
}

static void on_closed(uv_handle_t *handle)
{
    *(bool *)handle->data = true;
}

static void finish(void)
{
    for (size_t i = 0; i < COUNT; i++)
        handshake_end(&handshakes, &all[i]);
    cr_assert_eq(handshakes.count, 0);
    handshakes_close(&handshakes, on_closed, &is_closed);
    cr_assert(test_loop_until_set(&loop, &is_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&loop));
}

Test(http_handshake, each_turn_works_for_a_moment_and_in_order)
{
    start(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert(handshake_begin(&handshakes, &all[i]));
    for (size_t i = COUNT; i-- > 0;)
        handshake_queue(&handshakes, &all[i]);
    handshake_queue(&handshakes, &all[COUNT - 1]); /* keeps its place, and gets no second one */
    for (size_t turn = 1; turn <= COUNT; turn++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        cr_assert_eq(worked, turn);
        cr_assert_eq(order[turn - 1], COUNT - turn);
    }
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert_eq(worked, COUNT);
    finish();
}

Test(http_handshake, the_one_that_has_waited_longest_for_its_peer_is_to_be_closed)
{
    start(3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_null(handshakes_to_close(&handshakes));
        cr_assert(handshake_begin(&handshakes, &all[i]));
    }
    cr_assert_eq(handshakes_to_close(&handshakes), &all[0]);
    cr_assert_not(handshake_begin(&handshakes, &all[3]));
    handshake_queue(&handshakes, &all[0]);
    cr_assert_eq(handshakes_to_close(&handshakes), &all[1]);
    handshake_queue(&handshakes, &all[1]);
    handshake_queue(&handshakes, &all[2]);
    cr_assert_null(handshakes_to_close(&handshakes), "all wait for us");
    handshake_end(&handshakes, &all[1]);
    cr_assert(handshake_begin(&handshakes, &all[3]));
    finish();
}
