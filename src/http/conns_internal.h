/* All connections of a server. */
#pragma once
#include "conn_internal.h"

/* Initialises everything that the caller has not set. none_left is called whenever the last connection has closed. */
void conns_init(struct conns *conns);
/* Takes over an accepted, non-blocking socket of that peer. If the server is full, it only refuses the peer. */
void conns_accept(struct conns *conns, int fd, const struct sockaddr *peer, bool is_local);
/* For conn_set_tls(), then closes the connections whose clients are no longer verified by it, streams too. Requests
 * that are being handled are answered first. */
void conns_set_tls(struct conns *conns, struct tls_context *tls);
/* Counts and logs that a connection could not be accepted. error: a libuv error. */
void conns_note_failure(struct conns *conns, int error);
void conns_disconnect(struct conns *conns);
/* Closes the connections that have been quiet since then, by uv_now(). */
void conns_end_quiet(struct conns *conns, uint64_t since_ms);
/* Call it when no connection is left. Closes its handles; closed gets each of them, with arg as its data. */
enum { CONNS_HANDLES = 3 };
void conns_close(struct conns *conns, uv_close_cb closed, void *arg);
void conns_finish(struct conns *conns);
