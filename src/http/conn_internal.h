/* One connection: reads, has the parser make requests, one at a time, writes answers, keeps its deadlines, ends.
 *
 * What is read is consumed in place, from the server's buffer; only what cannot be consumed yet (a partial head, bytes
 * sent ahead) goes to the stash. An idle connection owns no buffer. */
#pragma once
#include "base/list.h"
#include "head_internal.h"
#include "server_internal.h"
#include "socket_internal.h"

struct http_request;

enum conn_state {
    CONN_IDLE,       /* between requests */
    CONN_HEAD,       /* part of a head has come */
    CONN_HANDLING,   /* the handler has the request; input is stashed */
    CONN_BODY,       /* the handler waits for the body */
    CONN_WRITING,    /* the answer does not fit the socket's buffer */
    CONN_DELIVERING, /* the answer is written; somebody waits for its acknowledgement */
    CONN_DISCARDING, /* answered; the rest of an unwanted body is still to come */
    CONN_LINGERING,  /* our side is shut down; input is dropped until the peer closes, so that no reset eats the answer
                      */
    CONN_CLOSED,
};

struct conn {
    struct socket socket;
    struct http_server *server;
    struct list in_server;
    struct list in_deadline;
    struct list in_ready;
    uint64_t deadline_ms;
    enum conn_state state;
    bool is_consuming;   /* conn_consume() is on the stack and will go on by itself */
    bool is_input_ended; /* the peer has shut down its side */
    struct http_request *request;
    struct head_scan scan;
    uint64_t body_begun_ms, body_last_ms; /* when the body was asked for, and when a part of it came last */
    struct buf stash;
    struct load loads[BURDEN_KINDS];
    struct list outputs;    /* what the socket has not taken yet (output.c) */
    size_t waiting_bytes;   /* of them */
    size_t output_bytes;    /* of memory that they have */
    uint64_t taken_bytes;   /* by the socket, since the connection began */
    size_t unwritten_bytes; /* the same when the write deadline was last set */
    size_t lingered_bytes;
    char peer[INET6_ADDRSTRLEN];
};

/* Takes over an accepted, non-blocking socket of that peer; with is_shed only to tell it that there is no room. 0, or a
 * libuv error; the descriptor is closed then. */
MUST_CHECK int conn_accept(struct http_server *server, int fd, const struct sockaddr *peer, bool is_shed);
/* The only way to end a connection, from any state; harmless when repeated. */
void conn_disconnect(struct conn *conn);
void conn_expire(struct conn *conn);
/* Goes on with stashed input. */
void conn_resume(struct conn *conn);

/* Has the socket tell of what this connection waits for: input, unless enough of it is stashed, and room for output. */
void conn_await(struct conn *conn);

/* Closes the connection that has been idle for longest; false: none is. */
bool conn_evict_idle(struct http_server *server);

/* burden.c */
void burden_init(struct http_server *server);
/* So many bytes are held for the connection now. Where all together are too many, connections are cut, this one
 * perhaps. */
void burden_set(struct conn *conn, enum burden_kind kind, size_t bytes);
/* The connection is closed. */
void burden_forget(struct conn *conn);

/* output.c. True: the socket has taken everything. False: the rest waits, a copy of it, and conn_output_taken() is
 * called when all is taken; or the connection is closed by now. lasting: the end of the bytes once more, as it lies in
 * memory that is never freed, and need not be copied; or {NULL, 0}. */
bool output_send(struct conn *conn, struct text bytes, struct text lasting);
void conn_output_taken(struct conn *conn);
/* The socket has room. */
void output_go_on(struct conn *conn);
/* Wipes what waits. */
void output_drop(struct conn *conn);

/* The request's side of the connection. lasting: as output_send() has it. */
void conn_send_answer(struct conn *conn, struct text answer, struct text lasting);
void conn_want_body(struct conn *conn);
void conn_delivered(struct conn *conn);
