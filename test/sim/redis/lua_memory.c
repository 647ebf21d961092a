/* Memory of the interpreter: many small pieces, which come back soon. Those of one size are kept for the next that
 * wants one. Not under the address sanitizer, which is to see each. */
#include "internal.h"

#include "base/check.h"
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
enum { CLASSES = 0 };
#else
enum { CLASSES = 32 };
#endif
enum { STEP_BYTES = 16, CHUNK_BYTES = 64 * 1024 };

struct piece {
    struct piece *next;
};

struct chunk {
    struct chunk *next;
    _Alignas(STEP_BYTES) char bytes[CHUNK_BYTES];
};

struct lua_memory {
    struct piece *kept[CLASSES + 1]; /* by size in steps */
    struct chunk *chunks;
    size_t used; /* of the first chunk */
};

static size_t class_of(size_t bytes)
{
    return (bytes + STEP_BYTES - 1) / STEP_BYTES;
}

static bool is_small(size_t bytes)
{
    return bytes > 0 && class_of(bytes) <= CLASSES;
}

static void *take(struct lua_memory *memory, size_t bytes)
{
    const size_t class = class_of(bytes);
    struct piece *piece = memory->kept[class];
    struct chunk *chunk = memory->chunks;

    if (piece) {
        memory->kept[class] = piece->next;
        return piece;
    }
    if (!chunk || memory->used + class * STEP_BYTES > CHUNK_BYTES) {
        chunk = mem_alloc(sizeof *chunk);
        chunk->next = memory->chunks;
        memory->chunks = chunk;
        memory->used = 0;
    }
    memory->used += class * STEP_BYTES;
    return chunk->bytes + memory->used - class * STEP_BYTES;
}

static void give_back(struct lua_memory *memory, void *ptr, size_t bytes)
{
    struct piece *piece = ptr;

    if (!is_small(bytes)) {
        free(ptr);
        return;
    }
    piece->next = memory->kept[class_of(bytes)];
    memory->kept[class_of(bytes)] = piece;
}

/* As lua_Alloc. */
static void *allocate(void *arg, void *ptr, size_t had, size_t bytes)
{
    struct lua_memory *memory = arg;
    void *moved;

    if (bytes == 0) {
        give_back(memory, ptr, had);
        return NULL;
    }
    if (!is_small(had) && !is_small(bytes))
        return mem_resize(ptr, bytes);
    if (is_small(had) && is_small(bytes) && class_of(had) == class_of(bytes))
        return ptr;
    moved = is_small(bytes) ? take(memory, bytes) : mem_resize(NULL, bytes);
    if (ptr) {
        memcpy(moved, ptr, had < bytes ? had : bytes);
        give_back(memory, ptr, had);
    }
    return moved;
}

/* Outside of all protected calls. */
static int panic(lua_State *lua)
{
    fprintf(stderr, "Lua: %s\n", lua_tostring(lua, -1));
    return 0;
}

lua_State *lua_begin(void)
{
    lua_State *lua = lua_newstate(allocate, mem_alloc(sizeof(struct lua_memory)));

    CHECK(lua);
    lua_atpanic(lua, panic);
    return lua;
}

void lua_end(lua_State *lua)
{
    void *arg;
    struct lua_memory *memory;
    struct chunk *chunk;

    lua_getallocf(lua, &arg);
    memory = arg;
    lua_close(lua);
    while ((chunk = memory->chunks)) {
        memory->chunks = chunk->next;
        free(chunk);
    }
    free(memory);
}
