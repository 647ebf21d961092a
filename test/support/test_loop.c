#include "test_loop.h"
#include "deadline.h"

#include <stdlib.h>

/* The loop is looked at again that often: a predicate may come true in a callback that runs before the loop sleeps. */
enum { TICK_MS = 10 };

struct limit {
    uv_timer_t timer;
    uint64_t give_up_ns;
    bool passed;
};

static void on_tick(uv_timer_t *timer)
{
    struct limit *limit = timer->data;

    limit->passed = uv_hrtime() >= limit->give_up_ns;
}

static void limit_closed(uv_handle_t *handle)
{
    free(handle->data);
}

bool test_loop_until(uv_loop_t *loop, test_loop_predicate *predicate, void *arg, unsigned timeout_ms)
{
    struct limit *limit = calloc(1, sizeof *limit);
    bool holds;

    if (!limit)
        abort();
    uv_timer_init(loop, &limit->timer);
    limit->timer.data = limit;
    limit->give_up_ns = uv_hrtime() + timeout_ms * UINT64_C(1000000);
    uv_update_time(loop);
    uv_timer_start(&limit->timer, on_tick, timeout_ms < TICK_MS ? timeout_ms : TICK_MS, TICK_MS);
    while (!(holds = predicate(arg)) && !limit->passed)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&limit->timer, limit_closed);
    return holds;
}

static bool is_set(void *flag)
{
    return *(const bool *)flag;
}

bool test_loop_until_set(uv_loop_t *loop, const bool *flag, unsigned timeout_ms)
{
    union {
        const bool *flag;
        void *arg;
    } borrowed = {.flag = flag};

    return test_loop_until(loop, is_set, borrowed.arg, timeout_ms);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void test_loop_for(uv_loop_t *loop, unsigned ms)
{
    test_loop_until(loop, never, NULL, ms);
}

static bool is_idle(void *loop)
{
    return !uv_loop_alive(loop);
}

bool test_loop_finish(uv_loop_t *loop)
{
    /* Not test_loop_until(): its own timer would keep the loop alive. */
    uint64_t give_up_ns = uv_hrtime() + PATIENCE_MS * UINT64_C(1000000);

    while (!is_idle(loop) && uv_hrtime() < give_up_ns)
        uv_run(loop, UV_RUN_NOWAIT);
    return uv_loop_close(loop) == 0;
}
