/* One attempt to connect to Redis: resolves the name without blocking, then tries its addresses in turn. It has no
 * timeout of its own; the caller cancels it. */
#pragma once
#include "redis/link.h"

/* On the heap; its owner frees it in the handle's close callback. */
union redis_stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct redis_connect;
/* status 0: stream is connected, and the callee now owns it. Otherwise a libuv error (UV_ECANCELED after a cancel), and
 * stream is NULL. */
typedef void redis_connected(void *arg, int status, union redis_stream *stream);

/* done runs exactly once, never inside this call. target must outlive the attempt. rotation: index of the address to
 * try first, modulo their number, so that a dead address does not block the others for ever. */
struct redis_connect *redis_connect_start(uv_loop_t *loop, const struct redis_target *target, unsigned rotation,
                                          redis_connected *done, void *arg);
/* done still runs, later. A name lookup under way can take as long as the resolver does. */
void redis_connect_cancel(struct redis_connect *connect);
