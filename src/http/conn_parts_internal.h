/* What the files of a connection share: conn.c has its states, output and deadlines, conn_input.c its input. Nothing
 * else includes this. */
#pragma once
#include "conn_internal.h"

/* conn.c */

/* The only way in which the state changes. If there is no such move, the connection gets no further answer. */
void conn_enter(struct conn *conn, enum conn_state state);
/* Separates the connection from its request, which lives on while it is held. */
void conn_part(struct conn *conn);
/* True: the socket has taken everything. False: the rest waits, or the connection has been closed. */
bool conn_note_output(struct conn *conn, enum output_result result);
/* The socket has room again. */
void conn_write_on(struct conn *conn);
/* H13: shuts down our side. The peer reads the whole response, then end of file. */
void conn_linger(struct conn *conn);
void conn_next_request(struct conn *conn);
/* Its first byte may come: of a handshake, or of a request. */
void conn_begin_talking(struct conn *conn);
void conn_send_continue_line(struct conn *conn);

/* conn_input.c */

/* Call it after anything that may have changed what the connection waits for or holds. */
void conn_settle(struct conn *conn);
/* Answers that the body is not acceptable, and tells the handler that waits for it. */
void conn_fail_body(struct conn *conn, enum http_error error);
void conn_refuse_proxy(struct conn *conn, enum proxy_error error);
/* Takes bytes of requests. */
void conn_receive(struct conn *conn, struct text input);
/* The peer has ended its side. */
void conn_end_input(struct conn *conn);
/* Call it last in a callback of the loop, because it may answer requests of other connections. */
void conn_offer_slice(const struct conn *conn);

/* conn_tls.c */

/* Expects a handshake. May close the connection, if too many are in progress. */
void conn_begin_tls(struct conn *conn);
/* The peer has gone away during the handshake. */
void conn_break_off_tls(struct conn *conn);
/* Takes bytes of a connection that has a session. */
void conn_receive_records(struct conn *conn, struct text input);
/* Replaces the bytes by the records that carry them. They last until the next call of anything in conn_tls.c. */
MUST_CHECK bool conn_seal(struct conn *conn, struct text *bytes);
/* Sends close_notify, if the session is open. */
void conn_end_tls(struct conn *conn);
/* The same for a connection that is being closed: what the socket does not take now is lost. */
void conn_leave_tls(struct conn *conn);
/* What its client has proved, judged by what new connections have to prove. */
enum tls_peer conn_peer(const struct conn *conn);
/* Memory that grows with what the peer leaves incomplete. */
size_t conn_held_by_tls(const struct conn *conn);
