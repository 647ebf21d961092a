/* One attempt to connect to Redis: resolves the name without blocking, tries its addresses in turn. It has no time
 * limit of its own: the caller cancels it. */
#pragma once
#include "redis/link.h"

/* Heap memory; whoever owns it frees it in the handle's close callback. */
union redis_stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct redis_connect;
/* status 0: stream is connected and the callee's. Else a libuv error (UV_ECANCELED after a cancel) and NULL. */
typedef void redis_connected(void *arg, int status, union redis_stream *stream);

/* done runs exactly once, never inside this call. target outlives the attempt. rotation: which of the addresses comes
 * first (modulo their number), so that one that never answers does not hide the others for ever. */
struct redis_connect *redis_connect_start(uv_loop_t *loop, const struct redis_target *target, unsigned rotation,
                                          redis_connected *done, void *arg);
/* done comes all the same, later. A name that is being resolved can take the resolver's time. */
void redis_connect_cancel(struct redis_connect *connect);
