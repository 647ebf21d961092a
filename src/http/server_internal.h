/* The parts of a server. Only server.c and tests include this: the parts know neither the server nor each other's
 * owners. */
#pragma once
#include "conns_internal.h"
#include "listener_internal.h"

enum server_state { SERVER_OPEN, SERVER_DRAINING, SERVER_CLOSING };

struct http_server {
    struct http_settings settings;
    enum server_state state;
    struct listeners listeners;
    struct conns conns;
    struct requests requests;
    struct answers answers;
    uv_timer_t drain_timer;
    void (*drained)(void *arg);
    void *drained_arg;
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned open_handles; /* while closing */
};
