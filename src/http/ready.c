#include "ready_internal.h"

#include "base/check.h"

void ready_init(struct ready *ready, uv_loop_t *loop, void (*resume)(struct list *node))
{
    CHECK(uv_idle_init(loop, &ready->idle) == 0);
    ready->idle.data = ready;
    ready->resume = resume;
    list_init(&ready->nodes);
}

void ready_close(struct ready *ready, uv_close_cb closed, void *arg)
{
    ready->idle.data = arg;
    uv_close((uv_handle_t *)&ready->idle, closed);
}

static void on_idle(uv_idle_t *idle)
{
    struct ready *ready = idle->data;
    struct list batch, *node;

    /* Nodes that are added meanwhile wait for the next turn, so that none starves the others. */
    list_init(&batch);
    list_append(&ready->nodes, &batch);
    list_remove(&ready->nodes);
    while ((node = list_first(&batch))) {
        list_remove(node);
        ready->resume(node);
    }
    if (list_empty(&ready->nodes))
        uv_idle_stop(idle);
}

void ready_add(struct ready *ready, struct list *node)
{
    list_remove(node);
    list_append(&ready->nodes, node);
    uv_idle_start(&ready->idle, on_idle);
}
