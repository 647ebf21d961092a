/* Work that blocks, away from the loop: on a thread of its own, which ends with it.
 *
 * libuv's pool keeps its threads forever, and a process with a second thread pays for it in each system call, because
 * every use of the shared descriptor table is counted: 2 % of a check. Work in the pool also queues behind all other
 * work: slow name resolution would hold up passwords. */
#pragma once
#include <uv.h>

struct background {
    uv_thread_t thread;
    uv_async_t ended;
    void (*work)(struct background *background);
    void (*done)(struct background *background);
    int status; /* 0, or a libuv error: no thread could be started, `work` was not called */
};

/* Calls `work` on a thread and then `done` on the loop, exactly once, later; from then on the memory is the caller's
 * again. It cannot be cancelled. */
void background_start(struct background *background, uv_loop_t *loop, void (*work)(struct background *background),
                      void (*done)(struct background *background));
