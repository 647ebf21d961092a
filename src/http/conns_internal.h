/* All connections of a server. */
#pragma once
#include "conn_internal.h"

/* Fills what is not set by then, and what requests and answers call. none_left is called whenever the last connection
 * was closed. */
void conns_init(struct conns *conns);
/* Takes over an accepted, non-blocking socket of that peer; where there is no room, only to say so. */
void conns_accept(struct conns *conns, int fd, const struct sockaddr *peer);
/* A connection could not be accepted: a libuv error. */
void conns_note_failure(struct conns *conns, int error);
void conns_disconnect(struct conns *conns, bool only_idle);
/* When none is left: closes both handles. closed gets each, and its data is arg. */
enum { CONNS_HANDLES = 2 };
void conns_close(struct conns *conns, uv_close_cb closed, void *arg);
void conns_finish(struct conns *conns);
