/* The private Redis of development mode, or the servers of its cluster: durable, on unix sockets (those of a cluster
 * also on ports of 127.0.0.1), and stopped when we end. */
#pragma once
#include "dev_home.h"

#include <uv.h>

struct dev_redis {
    uv_loop_t *loop;
    const struct dev_home *home;
    struct dev_child {
        struct dev_redis *redis;
        const struct dev_server *server;
        uv_process_t process;
        bool is_running;
    } children[DEV_CLUSTER_SERVERS];
    unsigned count;
    uv_timer_t timer;
    bool is_open; /* the handles are open */
    bool is_stopping;
    unsigned closing;
    void (*ended)(void *arg); /* a server ended although nobody stopped it; may be set later */
    void *arg;
};

/* Stops each Redis that a crash left running in this folder, starts new ones, and waits until they accept connections.
 * Returns EXIT_DONE, or an exit code after printing an error. Call dev_redis_stop() in both cases. */
MUST_CHECK int dev_redis_start(struct dev_redis *redis, uv_loop_t *loop, const struct dev_home *home);
/* No server has ended. */
MUST_CHECK bool dev_redis_is_running(const struct dev_redis *redis);
/* Runs the loop until the condition holds; false if it times out. */
bool dev_redis_wait(struct dev_redis *redis, bool (*holds)(const void *arg), const void *arg, unsigned within_ms);
/* Stops every server and waits until it has written everything and ended. Leaves nothing on the loop. */
void dev_redis_stop(struct dev_redis *redis);
