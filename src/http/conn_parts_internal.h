/* What the files of a connection share: conn.c has its states, output and deadlines, conn_input.c its input. Nothing
 * else includes this. */
#pragma once
#include "conn_internal.h"

/* conn.c */

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

/* conn_input.c */

/* Call it after anything that may have changed what the connection waits for or holds. */
void conn_settle(struct conn *conn);
/* Answers that the body is not acceptable, and tells the handler that waits for it. */
void conn_fail_body(struct conn *conn, enum http_error error);
void conn_refuse_proxy(struct conn *conn, enum proxy_error error);
