#include "handshake_internal.h"

#include "base/check.h"

/* Per turn of the loop. At least one handshake is worked on: with RSA, one takes about as long. */
enum { BUDGET_NS = 1000 * 1000 };

void handshakes_init(struct handshakes *handshakes, uv_loop_t *loop, size_t max,
                     void (*work)(struct handshake *handshake))
{
    CHECK(uv_idle_init(loop, &handshakes->idle) == 0);
    handshakes->idle.data = handshakes;
    handshakes->max = max;
    handshakes->work = work;
    list_init(&handshakes->queued);
    list_init(&handshakes->awaited);
}

void handshakes_close(struct handshakes *handshakes, uv_close_cb closed, void *arg)
{
    handshakes->idle.data = arg;
    uv_close((uv_handle_t *)&handshakes->idle, closed);
}

void handshake_init(struct handshake *handshake)
{
    list_init(&handshake->node);
}

/* While the idle handle runs, the loop polls without waiting, and everything that is ready gets its turn in between. */
static void on_idle(uv_idle_t *idle)
{
    struct handshakes *handshakes = idle->data;
    const uint64_t begun_ns = uv_hrtime();
    struct list *node;

    while ((node = list_first(&handshakes->queued))) {
        struct handshake *next = LIST_ENTRY(node, struct handshake, node);

        list_remove(node);
        next->is_queued = false;
        handshakes->work(next);
        if (uv_hrtime() - begun_ns >= BUDGET_NS)
            break;
    }
    if (list_empty(&handshakes->queued))
        uv_idle_stop(idle);
}

struct handshake *handshakes_to_close(struct handshakes *handshakes)
{
    struct list *longest = handshakes->count < handshakes->max ? NULL : list_first(&handshakes->awaited);

    return longest ? LIST_ENTRY(longest, struct handshake, node) : NULL;
}

bool handshake_begin(struct handshakes *handshakes, struct handshake *handshake)
{
    if (handshakes->count >= handshakes->max)
        return false;
    REQUIRE(!handshake->is_begun);
    handshakes->count++;
    handshake->is_begun = true;
    handshake_await(handshakes, handshake);
    return true;
}

void handshake_queue(struct handshakes *handshakes, struct handshake *handshake)
{
    REQUIRE(handshake->is_begun);
    if (handshake->is_queued)
        return;
    handshake->is_queued = true;
    list_remove(&handshake->node);
    list_append(&handshakes->queued, &handshake->node);
    uv_idle_start(&handshakes->idle, on_idle);
}

void handshake_await(struct handshakes *handshakes, struct handshake *handshake)
{
    REQUIRE(handshake->is_begun);
    list_remove(&handshake->node);
    list_append(&handshakes->awaited, &handshake->node);
}

void handshake_end(struct handshakes *handshakes, struct handshake *handshake)
{
    if (!handshake->is_begun)
        return;
    INVARIANT(handshakes->count > 0);
    handshake->is_begun = handshake->is_queued = false;
    handshakes->count--;
    list_remove(&handshake->node);
}
