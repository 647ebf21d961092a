/* Work that blocks, away from the loop: on a thread of its own, which ends with it.
 *
 * libuv's pool would do, but it keeps its threads for good, and a process with a second thread pays for it in each
 * system call (the table of descriptors is shared: each use of one is counted): 2 % of a check. And what waits there
 * waits behind all other work; names that are slow to resolve would hold up passwords. */
#pragma once
#include <uv.h>

struct background {
    uv_thread_t thread;
    uv_async_t ended;
    void (*work)(struct background *background);
    void (*done)(struct background *background);
    int status; /* 0, or a libuv error: there could be no further thread, `work` was not called */
};

/* Calls `work` on a thread, and after it `done` on the loop: exactly once, later; from then on the memory is the
 * caller's again. There is no way to cancel. */
void background_start(struct background *background, uv_loop_t *loop, void (*work)(struct background *background),
                      void (*done)(struct background *background));
