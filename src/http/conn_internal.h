/* One connection: reads, has the parser make requests, one at a time, writes answers, keeps its deadlines, ends.
 *
 * What is read is consumed in place, from the server's buffer; only what cannot be consumed yet (a partial head, bytes
 * sent ahead) goes to the stash. An idle connection owns no buffer. */
#pragma once
#include "base/list.h"
#include "head_internal.h"
#include "server_internal.h"

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
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    struct http_server *server;
    struct list in_server;
    struct list in_deadline;
    struct list in_ready;
    uint64_t deadline_ms;
    enum conn_state state;
    bool is_reading;
    bool is_consuming;   /* conn_consume() is on the stack and will go on by itself */
    bool is_input_ended; /* the peer has shut down its side */
    struct http_request *request;
    struct head_scan scan;
    struct buf stash;
    size_t unwritten_bytes; /* when the write deadline was last set */
    size_t lingered_bytes;
    char peer[INET6_ADDRSTRLEN];
};

/* Takes the waiting connection off the listener; with is_shed only to tell it that there is no room. */
void conn_accept(struct http_server *server, uv_stream_t *listener, bool is_shed);
/* The only way to end a connection, from any state; harmless when repeated. */
void conn_disconnect(struct conn *conn);
void conn_expire(struct conn *conn);
/* Goes on with stashed input. */
void conn_resume(struct conn *conn);

/* output.c. True: the socket has taken everything. False: the rest waits, a copy of it, and conn_output_taken() is
 * called when all is taken; or the connection is closed by now. */
bool output_send(struct conn *conn, struct text bytes);
void conn_output_taken(struct conn *conn);

/* The request's side of the connection. */
void conn_send_answer(struct conn *conn, struct text answer);
void conn_want_body(struct conn *conn);
void conn_delivered(struct conn *conn);
