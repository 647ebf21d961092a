/* Work that gathers in a turn of the loop is done in slices: before the loop waits, right after it has waited, and as
 * soon as there is enough for a whole slice. Slices are small, so that what was gathered for one is still in the
 * fastest cache. Loop thread only. */
#pragma once
#include "base/list.h"
#include <stddef.h>
#include <uv.h>

/* At most this many checks are looked up, counted and answered together. */
enum { TURN_SLICE = 8 };

/* A participant, in its owner's memory; callbacks that it does not need are NULL. list_remove(&part->node) ends it. */
struct turn_part {
    struct list node;
    size_t (*waiting)(void *arg); /* how many things wait for a slice */
    void (*slice)(void *arg);     /* does TURN_SLICE of them, or all if there are fewer */
    void (*before)(void *arg);    /* before each slice, whoever has work in it */
    void (*after)(void *arg);     /* after it; the part added last is called first */
    void *arg;
};

struct turn;

struct turn *turn_create(uv_loop_t *loop);
/* Frees the turn. closed runs once, later. */
void turn_close(struct turn *turn, void (*closed)(void *arg), void *arg);
void turn_add(struct turn *turn, struct turn_part *part);
/* Does whole slices, if there are any. Call it when a callback of the loop has done its own work, so that what the
 * slices complete interrupts nothing. */
void turn_offer(struct turn *turn);
/* Does everything that waits, as at the end of a turn. */
void turn_finish(struct turn *turn);
