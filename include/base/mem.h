/* Heap memory for what is small and of our own making: running out of it aborts, in one place.
 * Whatever a peer can size is capped first and lives in a struct buf (base/text.h), which can fail politely. */
#pragma once
#include <stddef.h>

/* Zeroed memory, never NULL. */
void *mem_alloc(size_t bytes);
/* As mem_alloc(), for megabytes that are read here and there: on huge pages where the kernel gives some to who asks
 * (madvise(2), MADV_HUGEPAGE), as each read would else wait for the page tables too. What is never touched costs
 * nothing; a touch may take 2 MiB at once. */
void *mem_alloc_large(size_t bytes);
/* For an array of what is one cache line each, at the start of one. Not zeroed, never NULL, freed by free(). Pages that
 * are never touched cost nothing. */
void *mem_alloc_lines(size_t count);
enum { MEM_LINE_BYTES = 64 };
/* As realloc(), never NULL; what is added is not zeroed. */
void *mem_resize(void *ptr, size_t bytes);
/* NUL-terminated copy of len bytes. */
char *mem_copy_text(const char *ptr, size_t len);
/* Has the processor bring into its caches what will be read soon. */
void mem_prefetch(const void *ptr, size_t bytes);
