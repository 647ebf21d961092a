/* A connected socket, TCP or Unix, in libuv's loop. libuv tells when it is ready (uv_poll_t); what goes in and out are
 * plain recv(2) and send(2): libuv's streams take read(2) and write(2), which go through the kernel's file layer first.
 *
 * epoll is level-triggered as libuv sets it up: each socket that was ready is asked once more whether it still is, with
 * every wait of the loop. A socket whose input was seen to be used up is edge-triggered instead. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

#include <stdbool.h>
#include <uv.h>

struct socket {
    uv_poll_t poll; /* its data is the owner's */
    int fd;
    int awaited; /* of UV_READABLE, UV_DISCONNECT and UV_WRITABLE: what libuv is asked to tell */
    bool is_edge_triggered;
};

/* Takes a connected, non-blocking descriptor. 0, or a libuv error: then the descriptor is still the caller's, and there
 * is nothing to close. */
MUST_CHECK int socket_open(struct socket *socket, uv_loop_t *loop, int fd);
/* The descriptor is closed at once, the memory is the caller's again in `closed`. */
void socket_close(struct socket *socket, uv_close_cb closed);

/* From now on `ready` is called, with a libuv error for a socket that has failed, or with events: UV_READABLE and
 * UV_DISCONNECT (the end of the peer's input) if input is wanted, UV_WRITABLE if room for output is. Neither: it is not
 * called. 0, or a libuv error. */
MUST_CHECK int socket_await(struct socket *socket, bool input, bool room, uv_poll_cb ready);
/* To be called once for each call of `ready` with UV_READABLE or UV_DISCONNECT, with its events. Returns how many bytes
 * came, at most `room`; 0 at the end of the peer's input; or a libuv error, UV_EAGAIN when there are none. */
MUST_CHECK ssize_t socket_receive(struct socket *socket, int events, char *ret_bytes, size_t room);
/* How many bytes the socket takes now; or a libuv error, UV_EAGAIN when it takes none. */
MUST_CHECK ssize_t socket_send(const struct socket *socket, struct text bytes);
