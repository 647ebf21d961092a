/* Blocking work on a thread of its own, which ends with the work.
 *
 * libuv's pool keeps its threads forever. A process with a second thread pays for it in each system call, because the
 * kernel then counts every use of the shared descriptor table: 2 % of a check. Work in the pool would also queue behind
 * all other work: slow name resolution would delay passwords. */
#pragma once
#include <uv.h>

struct background {
    uv_thread_t thread;
    uv_async_t ended;
    void (*work)(struct background *background);
    void (*done)(struct background *background);
    int status; /* 0, or a libuv error: the thread could not be started, and `work` was not called */
};

/* Calls `work` on a thread, then `done` on the loop, exactly once, later. From then on the memory is the caller's
 * again. Cannot be cancelled. */
void background_start(struct background *background, uv_loop_t *loop, void (*work)(struct background *background),
                      void (*done)(struct background *background));
