#include "next_turn_internal.h"

#include "base/check.h"

void next_turn_init(struct next_turn *turn, uv_loop_t *loop, void (*resume)(struct list *node))
{
    CHECK(uv_idle_init(loop, &turn->idle) == 0);
    turn->idle.data = turn;
    turn->resume = resume;
    list_init(&turn->nodes);
}

void next_turn_close(struct next_turn *turn, uv_close_cb closed, void *arg)
{
    turn->idle.data = arg;
    uv_close((uv_handle_t *)&turn->idle, closed);
}

static void on_idle(uv_idle_t *idle)
{
    struct next_turn *turn = idle->data;
    struct list batch, *node;

    /* Nodes that are added meanwhile wait for the next turn, so that none starves the others. */
    list_init(&batch);
    list_append(&turn->nodes, &batch);
    list_remove(&turn->nodes);
    while ((node = list_first(&batch))) {
        list_remove(node);
        turn->resume(node);
    }
    if (list_empty(&turn->nodes))
        uv_idle_stop(idle);
}

void next_turn_add(struct next_turn *turn, struct list *node)
{
    list_remove(node);
    list_append(&turn->nodes, node);
    uv_idle_start(&turn->idle, on_idle);
}
