/* Heap memory for our own small objects: running out of it aborts, in one place. Memory whose size a peer can choose is
 * capped and lives in a struct buf (base/text.h), which can fail without aborting. */
#pragma once
#include <stddef.h>

/* Zeroed memory, never NULL. */
void *mem_alloc(size_t bytes);
/* Like mem_alloc(), for megabytes with scattered reads: on huge pages if the kernel grants them (madvise(2),
 * MADV_HUGEPAGE), so that reads need not also wait for page tables. Untouched memory costs nothing; the first touch may
 * take 2 MiB at once. */
void *mem_alloc_large(size_t bytes);
/* For an array of elements of one cache line each; aligned to cache lines. Not zeroed, never NULL, freed by free().
 * Untouched pages cost nothing. */
void *mem_alloc_lines(size_t count);
enum { MEM_LINE_BYTES = 64 };
/* Like realloc(), never NULL; added memory is not zeroed. */
void *mem_resize(void *ptr, size_t bytes);
/* The array with room for one element behind its first `count`. *room: how many it has room for, doubled once it is
 * full; 0: the array is NULL. */
void *mem_grow(void *array, size_t count, size_t *room, size_t element_bytes);
/* NUL-terminated copy of len bytes. */
char *mem_copy_text(const char *ptr, size_t len);
/* Prefetches what will be read soon. */
void mem_prefetch(const void *ptr, size_t bytes);
