#include "base/mem.h"

#include "base/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *mem_alloc(size_t bytes)
{
    void *ptr = calloc(1, bytes ? bytes : 1);
    CHECK(ptr);
    return ptr;
}

void *mem_alloc_lines(size_t count)
{
    CHECK(count > 0 && count <= SIZE_MAX / MEM_LINE_BYTES);
    void *ptr = aligned_alloc(MEM_LINE_BYTES, count * MEM_LINE_BYTES);
    CHECK(ptr);
    return ptr;
}

void *mem_alloc_large(size_t bytes)
{
    void *ptr = mem_alloc(bytes);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)ptr + page - 1) / page * page,
                    end = ((uintptr_t)ptr + bytes) / page * page;

    /* A kernel without huge pages refuses; then small pages are used. */
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
    return ptr;
}

void *mem_resize(void *ptr, size_t bytes)
{
    void *resized = realloc(ptr, bytes ? bytes : 1);
    CHECK(resized);
    return resized;
}

void *mem_grow(void *array, size_t count, size_t *room, size_t element_bytes)
{
    enum { FIRST_ROOM = 64 };

    if (count < *room)
        return array;
    *room = *room > 0 ? 2 * *room : FIRST_ROOM;
    return mem_resize(array, *room * element_bytes);
}

char *mem_copy_text(const char *ptr, size_t len)
{
    CHECK(len < SIZE_MAX);
    char *copy = mem_alloc(len + 1);
    if (len)
        memcpy(copy, ptr, len);
    return copy;
}

void mem_prefetch(const void *ptr, size_t bytes)
{
    const char *from = ptr, *last = from + bytes - 1;

    for (const char *at = from; at < last; at += MEM_LINE_BYTES)
        __builtin_prefetch(at);
    __builtin_prefetch(last);
}
