/* The private Redis of development mode: durable, on a unix socket, and stopped when we end. */
#pragma once
#include "dev_home.h"

#include <uv.h>

struct dev_redis {
    uv_loop_t *loop;
    const struct dev_home *home;
    uv_process_t process;
    uv_timer_t timer;
    bool is_open;    /* the handles are open */
    bool is_running; /* the child process runs */
    bool is_stopping;
    unsigned closing;
    void (*ended)(void *arg); /* Redis ended although nobody stopped it; may be set later */
    void *arg;
};

/* Stops a Redis that a crash left running in this folder, starts a new one, and waits until it accepts connections.
 * Returns EXIT_DONE, or an exit code after printing an error. Call dev_redis_stop() in both cases. */
MUST_CHECK int dev_redis_start(struct dev_redis *redis, uv_loop_t *loop, const struct dev_home *home);
/* Stops Redis and waits until it has written everything and ended. Leaves nothing on the loop. */
void dev_redis_stop(struct dev_redis *redis);
