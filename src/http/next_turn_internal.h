/* Work that goes on in the next turn of the loop. */
#pragma once
#include "base/list.h"
#include <uv.h>

struct next_turn {
    uv_idle_t idle;
    struct list nodes;
    void (*resume)(struct list *node);
};

/* resume is called for each node; by then it has left the list. */
void next_turn_init(struct next_turn *turn, uv_loop_t *loop, void (*resume)(struct list *node));
/* Closes the handle; closed gets it, with arg as its data. */
void next_turn_close(struct next_turn *turn, uv_close_cb closed, void *arg);
/* May be repeated. list_remove() takes the node back. */
void next_turn_add(struct next_turn *turn, struct list *node);
