/* The private Redis of the development mode: durable, on a unix socket, ending with us. */
#pragma once
#include "dev_home.h"

#include <uv.h>

struct dev_redis {
    uv_loop_t *loop;
    const struct dev_home *home;
    uv_process_t process;
    uv_timer_t timer;
    bool is_open;    /* the handles are */
    bool is_running; /* the child is */
    bool is_stopping;
    unsigned closing;
    void (*ended)(void *arg); /* it ended though nobody stopped it; may be set later */
    void *arg;
};

/* Stops one that a crash has left in this folder, starts a new one, waits until it takes connections. EXIT_DONE, or the
 * code of what was told. Either way dev_redis_stop() ends it. */
MUST_CHECK int dev_redis_start(struct dev_redis *redis, uv_loop_t *loop, const struct dev_home *home);
/* Waits until it has written everything and ended, and leaves nothing on the loop. */
void dev_redis_stop(struct dev_redis *redis);
