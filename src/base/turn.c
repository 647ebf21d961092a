#include "base/turn.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/turn_clock.h"
#include <stdlib.h>

struct turn {
    struct list parts;        /* struct turn_part */
    uv_prepare_t before_wait; /* of the loop */
    uv_check_t after_wait;
    bool is_running;
    struct callback closed;
};

static size_t count_waiting(const struct turn *turn)
{
    size_t count = 0;

    for (struct list *node = turn->parts.next; node != &turn->parts; node = node->next) {
        const struct turn_part *part = LIST_ENTRY(node, struct turn_part, node);

        if (part->waiting)
            count += part->waiting(part->arg);
    }
    return count;
}

static void do_slice(const struct turn *turn)
{
    turn_clock_advance();
    for (struct list *node = turn->parts.next; node != &turn->parts; node = node->next) {
        const struct turn_part *part = LIST_ENTRY(node, struct turn_part, node);

        if (part->before)
            part->before(part->arg);
    }
    for (struct list *node = turn->parts.next; node != &turn->parts; node = node->next) {
        const struct turn_part *part = LIST_ENTRY(node, struct turn_part, node);

        if (part->slice)
            part->slice(part->arg);
    }
    for (struct list *node = turn->parts.prev; node != &turn->parts; node = node->prev) {
        const struct turn_part *part = LIST_ENTRY(node, struct turn_part, node);

        if (part->after)
            part->after(part->arg);
    }
}

static void run(struct turn *turn, size_t least)
{
    if (turn->is_running)
        return;
    turn->is_running = true;
    while (count_waiting(turn) >= least)
        do_slice(turn);
    turn->is_running = false;
}

void turn_offer(struct turn *turn)
{
    run(turn, TURN_SLICE);
}

void turn_finish(struct turn *turn)
{
    run(turn, 1);
}

static void on_before_wait(uv_prepare_t *handle)
{
    turn_finish(handle->data);
    turn_clock_end();
}

/* If no callback has asked for the time yet, the turn counts from here. */
static void on_after_wait(uv_check_t *handle)
{
    (void)turn_clock_ns();
    turn_finish(handle->data);
}

struct turn *turn_create(uv_loop_t *loop)
{
    struct turn *turn = mem_alloc(sizeof *turn);

    list_init(&turn->parts);
    CHECK(uv_prepare_init(loop, &turn->before_wait) == 0);
    CHECK(uv_check_init(loop, &turn->after_wait) == 0);
    turn->before_wait.data = turn->after_wait.data = turn;
    CHECK(uv_prepare_start(&turn->before_wait, on_before_wait) == 0);
    CHECK(uv_check_start(&turn->after_wait, on_after_wait) == 0);
    return turn;
}

void turn_add(struct turn *turn, struct turn_part *part)
{
    list_append(&turn->parts, &part->node);
}

static void on_closed(uv_handle_t *after_wait)
{
    struct turn *turn = after_wait->data;
    const struct callback closed = turn->closed;

    free(turn);
    callback_run(closed);
}

static void on_before_wait_closed(uv_handle_t *before_wait)
{
    struct turn *turn = before_wait->data;

    uv_close((uv_handle_t *)&turn->after_wait, on_closed);
}

void turn_close(struct turn *turn, void (*closed)(void *arg), void *arg)
{
    turn->closed = (struct callback){closed, arg};
    uv_close((uv_handle_t *)&turn->before_wait, on_before_wait_closed);
}
