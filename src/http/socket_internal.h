/* A connected socket, TCP or Unix, on libuv's loop. libuv only reports when it is ready (uv_poll_t); data moves by
 * plain recv(2) and send(2), because libuv's streams use read(2) and write(2), which go through the kernel's file layer
 * first.
 *
 * libuv uses epoll level-triggered: every wait of the loop checks again whether a socket that was ready still is. A
 * socket whose input has been read completely is made edge-triggered, which saves that check. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

#include <stdbool.h>
#include <uv.h>

struct socket {
    uv_poll_t poll; /* its data is the owner's */
    int fd;
    int awaited; /* the events that libuv polls for: UV_READABLE, UV_DISCONNECT, UV_WRITABLE */
    bool is_edge_triggered;
};

/* Takes over a connected, non-blocking descriptor. 0, or a libuv error; then the descriptor is still the caller's, and
 * socket_close() must not be called. */
MUST_CHECK int socket_open(struct socket *socket, uv_loop_t *loop, int fd);
/* Closes the descriptor at once. The memory is the caller's again in `closed`. */
void socket_close(struct socket *socket, uv_close_cb closed);

/* From now on, `ready` is called with a libuv error if the socket has failed, else with events: UV_READABLE and
 * UV_DISCONNECT (the end of the peer's input) if input is wanted, UV_WRITABLE if room for output is. If neither is
 * wanted, it is not called. 0, or a libuv error. */
MUST_CHECK int socket_await(struct socket *socket, bool input, bool room, uv_poll_cb ready);
/* Call it once for each call of `ready` with UV_READABLE or UV_DISCONNECT, and pass its events. Returns the number
 * of bytes received, at most `room`; 0 at the end of the peer's input; or a libuv error: UV_EAGAIN if nothing has
 * arrived. */
MUST_CHECK ssize_t socket_receive(struct socket *socket, int events, char *ret_bytes, size_t room);
/* Returns how many bytes the socket took, or a libuv error: UV_EAGAIN if it has no room. */
MUST_CHECK ssize_t socket_send(const struct socket *socket, struct text bytes);
