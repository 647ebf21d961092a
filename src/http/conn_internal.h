/* One connection: reads, lets the parser make one request at a time, writes responses, keeps its deadlines, ends.
 *
 * Input is consumed in place, from a buffer that all connections share. Only input that cannot be consumed yet (a
 * partial head, bytes sent ahead) goes to the stash. An idle connection owns no buffer. */
#pragma once
#include "burden_internal.h"
#include "deadline_internal.h"
#include "handshake_internal.h"
#include "proxy_internal.h"
#include "next_turn_internal.h"
#include "response_internal.h"
#include "tls/session.h"

enum {
    READ_BUFFER_BYTES = 64 * 1024,
    /* A client may send this much ahead while its request is handled; beyond it, we stop reading. */
    STASH_STOP_BYTES = 16 * 1024,
};

/* What the connections of a server share. */
struct conns {
    uv_loop_t *loop;
    const struct http_settings *settings;
    struct requests *requests;
    struct answers *answers;
    struct list all;
    size_t count;
    struct deadlines deadlines;
    struct burdens burdens;
    struct next_turn ready;  /* connections that go on with their input in the next turn */
    char *read_buffer;       /* lent to one read at a time */
    struct tls_context *tls; /* NULL: connections are plain */
    struct handshakes handshakes;
    struct buf plain; /* what a read meant, lent like read_buffer */
    struct buf wire;  /* records on their way to an output */
    struct log_pause eviction_pause, failure_pause, proxy_pause, handshake_pause, handshakes_max_pause;
    void (*none_left)(void *arg);
    void *arg;
};

/*   begun -> PROXY, behind a trusted proxy -> HANDSHAKE, with TLS -> IDLE
 *   IDLE -> HEAD, if it comes in parts -> HANDLING -> BODY, if it is wanted -> HANDLING
 *   HANDLING, or BODY -> STREAMING, WRITING, DELIVERING, as often as needed -> IDLE, or DISCARDING before it
 *
 * After a refusal, or after the last response, LINGERING; and from each to CLOSED, where it stays. */
enum conn_state {
    CONN_IDLE,       /* between requests */
    CONN_PROXY,      /* just begun; its PROXY header has not arrived */
    CONN_HANDSHAKE,  /* TLS: input waits in the stash for its turn */
    CONN_HEAD,       /* part of a head has arrived */
    CONN_HANDLING,   /* the handler has the request; input is stashed */
    CONN_BODY,       /* the handler waits for the body */
    CONN_STREAMING,  /* all of the response so far is written; the handler makes the next piece */
    CONN_WRITING,    /* the response does not fit into the socket's buffer */
    CONN_DELIVERING, /* the response is written; somebody waits for its acknowledgement */
    CONN_DISCARDING, /* answered; the rest of an unwanted body is still arriving */
    CONN_LINGERING,  /* our side is shut down; input is dropped until the peer closes, because a reset could destroy the
                        response */
    CONN_CLOSED,
};

struct conn {
    struct socket socket;
    struct output output;
    struct tls_session *tls; /* NULL: plain, or the handshake has not had its first turn */
    struct handshake handshake;
    struct conns *all;
    struct list in_all;
    struct list in_ready;
    struct deadline deadline;
    struct load load;
    enum conn_state state;
    bool is_consuming;   /* conn_consume() is on the stack and goes on by itself */
    bool is_local;       /* plain, without a PROXY header: see http_server_listen_socket() */
    bool holds_body;     /* of a request that is not answered yet */
    bool is_input_ended; /* the peer has shut down its side */
    bool is_ending;      /* the same is known, but not all that came before is read */
    bool is_odd;         /* it made a forbidden move, and takes no input */
    struct http_request *request;
    struct head_scan scan;
    uint64_t body_begun_ms, body_last_ms; /* when the body was asked for, and when its last bytes arrived */
    struct buf stash;
    size_t unwritten_bytes; /* of the output, when the write deadline was last set */
    size_t lingered_bytes;
    char peer[INET6_ADDRSTRLEN];
};

/* Starts a connection whose socket is open, and whose peer and is_local are set; everything else is zeroed. */
void conn_begin(struct conn *conn, struct conns *conns);
/* Polls the socket for what this connection waits for: input, unless enough is stashed, and room for output. */
void conn_await(struct conn *conn);
/* Answers when no request can go to the handler: the head is unsound or late, or the server is full. */
void conn_refuse(struct conn *conn, enum http_error error);
/* The only way to end a connection, from any state. Repeated calls do nothing. */
void conn_disconnect(struct conn *conn);

/* Callbacks of the parts. */
/* It has neither a request nor input, and has been so since then, by uv_now(). */
bool conn_is_quiet_since(const struct conn *conn, uint64_t ms);
void conn_expire(struct deadline *deadline);
void conn_cut(struct load *load);
void conn_resume(struct list *in_ready);
void conn_settle_delivery(struct delivery *delivery, bool is_delivered);
void conn_send_answer(struct conn *conn, struct text answer, struct text lasting);
void conn_want_body(struct conn *conn);
void conn_end_stream(struct conn *conn);
/* Cuts the connection with a reset, which the peer cannot take for an end. */
void conn_reset(struct conn *conn);
void conn_shake_hands(struct handshake *handshake);

/* Most that a connection stashes. */
size_t stash_max_bytes(const struct http_settings *settings);
/* What the connections of a server share for TLS. */
void conn_init_tls(struct conns *conns);
void conn_finish_tls(struct conns *conns);
/* NULL: new connections are plain. Holds the context. */
void conn_set_tls(struct conns *conns, struct tls_context *tls);
/* Its client's certificate counted, and counts no longer: it gets nothing more. */
bool conn_has_lost_right(const struct conn *conn);
