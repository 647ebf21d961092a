#include "base/arena.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BLOCK_BYTES = 8 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t bytes;
    alignas(ARENA_ALIGNMENT) char memory[];
};

struct arena_deferred {
    struct arena_deferred *next;
    void (*fn)(void *arg);
    void *arg;
};

void arena_init(struct arena *a, void *first, size_t first_bytes)
{
    CHECK((uintptr_t)first % ARENA_ALIGNMENT == 0);
    *a = (struct arena){
        .cursor = first,
        .end = first ? (char *)first + first_bytes : NULL,
        .first = first,
        .first_bytes = first_bytes,
    };
}

static void arena_add_block(struct arena *a, size_t bytes)
{
    size_t capacity = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
    struct arena_block *block = mem_alloc(sizeof *block + capacity);
    block->next = a->blocks;
    block->bytes = capacity;
    a->blocks = block;
    a->cursor = block->memory;
    a->end = block->memory + capacity;
}

void *arena_alloc_slowly(struct arena *a, size_t bytes)
{
    CHECK(bytes <= SIZE_MAX / 2);
    arena_add_block(a, bytes + ARENA_ALIGNMENT - 1); /* the request fits there, padding included */
    return arena_alloc(a, bytes);
}

struct text arena_copy(struct arena *a, struct text t)
{
    CHECK(t.len < SIZE_MAX / 2);
    char *copy = arena_alloc(a, t.len + 1);
    if (t.len)
        memcpy(copy, t.ptr, t.len);
    return (struct text){copy, t.len};
}

void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg)
{
    struct arena_deferred *deferred = arena_alloc(a, sizeof *deferred);
    *deferred = (struct arena_deferred){.next = a->deferred, .fn = fn, .arg = arg};
    a->deferred = deferred;
}

static void arena_run_deferred(struct arena *a)
{
    while (a->deferred) {
        struct arena_deferred *deferred = a->deferred;
        a->deferred = deferred->next;
        deferred->fn(deferred->arg);
    }
}

void arena_finish(struct arena *a)
{
    arena_run_deferred(a);

    /* Heap blocks are added only once the first is used up, so if there are any, all of the first counts as used. */
    size_t first_used = a->blocks || !a->first ? a->first_bytes : (size_t)(a->cursor - a->first);
    secure_wipe(a->first, first_used);
    while (a->blocks) {
        struct arena_block *block = a->blocks;
        a->blocks = block->next;
        secure_wipe(block->memory, block->bytes);
        free(block);
    }
    arena_init(a, a->first, a->first_bytes);
}
