/* Work that goes on in the next turn of the loop. */
#pragma once
#include "base/list.h"
#include <uv.h>

struct ready {
    uv_idle_t idle;
    struct list nodes;
    void (*resume)(struct list *node);
};

/* resume is called for each node; by then it has left the list. */
void ready_init(struct ready *ready, uv_loop_t *loop, void (*resume)(struct list *node));
/* Closes the handle; closed gets it, with arg as its data. */
void ready_close(struct ready *ready, uv_close_cb closed, void *arg);
/* May be repeated. list_remove() takes the node back. */
void ready_add(struct ready *ready, struct list *node);
