#include "heap.h"
#include "base/check.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEAPS_MAX = 64, CLASSES = 40, LEAST_BYTES = 32, ALIGN = 16 };
#define HEAP_BYTES (UINT64_C(4) << 30)
#define FIRST_ADDRESS UINT64_C(0x200000000000)

/* In front of a block. */
struct block {
    uint32_t class, shift; /* shift: an aligned block begins so many bytes behind the one that was allocated */
    size_t size;
};

struct sim_heap {
    bool is_taken, is_mapped;
    char *next;                  /* from here on it was never used, so it is zero */
    struct block *free[CLASSES]; /* their `size` is the address of the next */
};

static struct sim_heap heaps[HEAPS_MAX];
static struct sim_heap *used;

static char *begin_of(const struct sim_heap *heap)
{
    return (char *)(uintptr_t)(FIRST_ADDRESS + (uint64_t)(heap - heaps) * HEAP_BYTES);
}

static bool is_ours(const void *ptr)
{
    return (uintptr_t)ptr >= FIRST_ADDRESS && (uintptr_t)ptr < FIRST_ADDRESS + HEAPS_MAX * HEAP_BYTES;
}

struct sim_heap *sim_heap_take(void)
{
    struct sim_heap *heap = heaps;

    while (heap->is_taken)
        CHECK(++heap < heaps + HEAPS_MAX);
    if (!heap->is_mapped)
        CHECK(mmap(begin_of(heap), HEAP_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == begin_of(heap));
    *heap = (struct sim_heap){.is_taken = true, .is_mapped = true, .next = begin_of(heap)};
    return heap;
}

void sim_heap_give_back(struct sim_heap *heap)
{
    CHECK(madvise(begin_of(heap), (size_t)(heap->next - begin_of(heap)), MADV_DONTNEED) == 0);
    heap->is_taken = false;
}

void sim_heap_use(struct sim_heap *heap)
{
    used = heap;
}

static size_t class_bytes(uint32_t class)
{
    return (size_t)LEAST_BYTES << class;
}

static void *allocate(size_t bytes, bool *ret_is_zero)
{
    uint32_t class = 0;
    struct block *block;

    while (class_bytes(class) < bytes)
        CHECK(++class < CLASSES);
    block = used->free[class];
    *ret_is_zero = !block;
    if (block) {
        used->free[class] = (struct block *)block->size;
    } else {
        block = (struct block *)used->next;
        used->next += sizeof *block + class_bytes(class);
        CHECK(used->next <= begin_of(used) + HEAP_BYTES);
    }
    *block = (struct block){.class = class, .size = bytes};
    return block + 1;
}

/* The linker's names. */
void *image_malloc(size_t bytes) __asm__("__wrap_malloc");
void *image_calloc(size_t count, size_t bytes) __asm__("__wrap_calloc");
void *image_realloc(void *ptr, size_t bytes) __asm__("__wrap_realloc");
void *image_aligned_alloc(size_t align, size_t bytes) __asm__("__wrap_aligned_alloc");
char *image_strdup(const char *text) __asm__("__wrap_strdup");
void image_free(void *ptr) __asm__("__wrap_free");

void *image_malloc(size_t bytes)
{
    bool is_zero;

    return used ? allocate(bytes, &is_zero) : malloc(bytes);
}

void *image_calloc(size_t count, size_t bytes)
{
    bool is_zero;
    void *ptr;

    if (!used)
        return calloc(count, bytes);
    CHECK(bytes == 0 || count <= SIZE_MAX / bytes);
    ptr = allocate(count * bytes, &is_zero);
    return is_zero ? ptr : memset(ptr, 0, count * bytes);
}

void *image_aligned_alloc(size_t align, size_t bytes)
{
    bool is_zero;
    char *ptr, *aligned;

    if (!used || align <= ALIGN)
        return used ? allocate(bytes, &is_zero) : aligned_alloc(align, bytes);
    ptr = allocate(bytes + align, &is_zero);
    aligned = (char *)(((uintptr_t)ptr + align - 1) / align * align);
    if (aligned > ptr)
        ((struct block *)aligned)[-1] = (struct block){.shift = (uint32_t)(aligned - ptr), .size = bytes};
    return aligned;
}

static struct block *block_of(void *ptr)
{
    struct block *block = (struct block *)ptr - 1;

    return block->shift > 0 ? (struct block *)((char *)ptr - block->shift) - 1 : block;
}

/* Of whichever heap: a library may free what another process allocated. */
void image_free(void *ptr)
{
    struct block *block;
    struct sim_heap *heap;

    if (!is_ours(ptr)) {
        free(ptr);
        return;
    }
    block = block_of(ptr);
    heap = &heaps[((uintptr_t)ptr - FIRST_ADDRESS) / HEAP_BYTES];
    block->size = (uintptr_t)heap->free[block->class];
    heap->free[block->class] = block;
}

void *image_realloc(void *ptr, size_t bytes)
{
    struct block *block;
    void *moved;

    if (!ptr)
        return image_malloc(bytes);
    if (!is_ours(ptr))
        return realloc(ptr, bytes);
    block = (struct block *)ptr - 1;
    if (block->shift == 0 && bytes <= class_bytes(block->class)) {
        block->size = bytes;
        return ptr;
    }
    moved = image_malloc(bytes);
    memcpy(moved, ptr, block->size < bytes ? block->size : bytes);
    image_free(ptr);
    return moved;
}

char *image_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;

    return memcpy(image_malloc(bytes), text, bytes);
}
