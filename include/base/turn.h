/* What a turn of the loop gathers is done together, in slices: before the loop waits, right after it has waited, and as
 * soon as a whole slice is there. A slice is small, so that what was gathered for it is still in the fastest cache.
 * Loop thread only. */
#pragma once
#include "base/list.h"
#include <stddef.h>
#include <uv.h>

/* So many at most are looked up together, counted together, answered together. */
enum { TURN_SLICE = 8 };

/* Who takes part; in its own memory, with what it does not do left out. It ends by list_remove(&part->node). */
struct turn_part {
    struct list node;
    size_t (*waiting)(void *arg); /* how many things wait for a slice */
    void (*slice)(void *arg);     /* does TURN_SLICE of them, or all that there are */
    void (*before)(void *arg);    /* each slice, whosever it is */
    void (*after)(void *arg);     /* the same; the part that was added last is called first */
    void *arg;
};

struct turn;

struct turn *turn_create(uv_loop_t *loop);
/* Runs no part any more. closed runs once, later. */
void turn_close(struct turn *turn, void (*closed)(void *arg), void *arg);
void turn_add(struct turn *turn, struct turn_part *part);
/* Does whole slices, where there are any. To be called when a callback of the loop has done its own work, for then
 * nothing is interrupted by what the slices complete. */
void turn_offer(struct turn *turn);
/* Does everything that waits, as the end of a turn does. */
void turn_finish(struct turn *turn);
