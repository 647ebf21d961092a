/* The parts of a server. Only server.c and tests include this: the parts know neither the server nor each other's
 * owners. */
#pragma once
#include "conns_internal.h"
#include "listener_internal.h"

enum server_state { SERVER_OPEN, SERVER_WANING, SERVER_DRAINING, SERVER_CLOSING };

struct http_server {
    struct http_settings settings;
    enum server_state state;
    struct listeners listeners;
    struct conns conns;
    struct requests requests;
    struct answers answers;
    uint64_t accepted_ms; /* the last connection, by uv_now() */
    uv_timer_t drain_timer;
    uint64_t waned_ms, quiet_ms, drain_ends_ms; /* drain_ends_ms: UINT64_MAX while it only wanes */
    bool is_late;
    struct http_drain drain; /* drained is NULL before, and once it was told */
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned open_handles; /* while closing */
};
