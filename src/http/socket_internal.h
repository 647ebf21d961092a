/* recv(2) and send(2) on a stream of libuv's, in place of its own read(2) and write(2): those go through the kernel's
 * file layer first, which costs an answer some 3 % of its time. libuv tells when there is input, and keeps what the
 * socket does not take. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

#include <uv.h>

/* How many bytes came, at most `room`; 0 at the end of the peer's input; or a libuv error, UV_EAGAIN when there are
 * none. */
MUST_CHECK ssize_t socket_receive(const uv_stream_t *stream, char *ret_bytes, size_t room);
/* How many bytes the socket takes now; or a libuv error, UV_EAGAIN when it takes none or others wait before these. */
MUST_CHECK ssize_t socket_send(const uv_stream_t *stream, struct text bytes);
