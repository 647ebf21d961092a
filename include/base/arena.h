/* Memory of one request: bump allocation and deferred calls. arena_finish() runs the deferred calls, last first, then
 * wipes the used memory (requests carry passwords) and frees all blocks. */
#pragma once
#include "base/text.h"

enum { ARENA_ALIGNMENT = 16 };

struct arena_block;
struct arena_deferred;

struct arena {
    struct arena_block *blocks; /* heap blocks, newest first */
    struct arena_deferred *deferred;
    char *cursor, *end;
    char *first; /* the caller's first block, kept across arena_finish() */
    size_t first_bytes;
};

/* first: zeroed, 16-byte aligned storage for the common case. The caller owns it; it must outlive the arena. */
void arena_init(struct arena *a, void *first, size_t first_bytes);
void *arena_alloc_slowly(struct arena *a, size_t bytes);
/* Zeroed, 16-byte aligned, never NULL. Callers cap sizes that a peer can choose. Inline while there is room: the memory
 * after the cursor is already zero, because the caller's block came zeroed and arena_finish() wiped what was used. */
static inline void *arena_alloc(struct arena *a, size_t bytes)
{
    const size_t room = a->cursor ? (size_t)(a->end - a->cursor) : 0;
    const size_t rounded = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    char *ptr = a->cursor;
    if (!ptr || bytes > room || rounded > room)
        return arena_alloc_slowly(a, bytes);
    a->cursor += rounded;
    return ptr;
}
/* A copy, followed by a NUL. */
struct text arena_copy(struct arena *a, struct text t);
/* Runs fn(arg) in arena_finish(). */
void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg);
/* Leaves the arena as after arena_init(). */
void arena_finish(struct arena *a);
