/* A process' memory: what its image allocates, at addresses that are the same in each run, and gone when it ends. The
 * image's calls of malloc() and its kin come here (the linker's --wrap in image.cmake). */
#pragma once
#include <stddef.h>

struct sim_heap;

struct sim_heap *sim_heap_take(void);
/* Everything in it ends. */
void sim_heap_give_back(struct sim_heap *heap);
/* Whose heap the image's calls are served from. NULL: the program's own. */
void sim_heap_use(struct sim_heap *heap);
