/* A request and what refers to it: its connection, its handlers (holds), and we ourselves while it is on our stack or
 * in one of our lists (pins). It is freed, wiped, to the server's free list when nobody is left. */
#pragma once
#include "conn_internal.h"
#include "http/request.h"
#include "parser_internal.h"

/* Head, field table and reply lines of an ordinary request fit. */
enum { REQUEST_FIRST_BYTES = 4096 };

enum delivery_state {
    DELIVERY_NONE,
    DELIVERY_ASKED,   /* the answer is not yet written */
    DELIVERY_WRITTEN, /* and not yet acknowledged */
};

struct reply_line {
    struct reply_line *next;
    struct text line;
};

struct http_request {
    struct list in_server; /* free list */
    struct http_server *server;
    struct conn *conn; /* NULL once it is gone, or has gone on to the next request */
    unsigned holds, pins;
    bool is_gone;
    bool is_replied;
    bool must_close;
    bool has_sent_continue;
    enum http_method method;
    struct id id;
    char peer[INET6_ADDRSTRLEN];
    struct text head_bytes;
    struct http_head head;
    struct http_parser parser;
    struct buf body;
    http_body_done *body_done;
    void *body_arg;
    struct reply_line *first_line, **last_line;
    struct text fixed_headers; /* {NULL, 0}: the server's */
    struct list in_deliveries; /* looked at by the delivery timer */
    enum delivery_state delivery;
    bool was_delivered; /* as its connection ended */
    void (*delivered)(void *arg, bool delivered);
    void *delivered_arg;
    struct arena arena;
    _Alignas(16) char first_block[REQUEST_FIRST_BYTES];
};

/* Pinned once, for the connection. */
struct http_request *request_create(struct conn *conn);
void request_pin(struct http_request *request);
void request_unpin(struct http_request *request);
/* Copies the head and parses it. */
enum problem_code request_read_head(struct http_request *request, struct text bytes, size_t lines);
/* Calls the handler and holds it to its contract. */
void request_dispatch(struct http_request *request);
/* The connection has failed. What was waited for is told later. */
void request_lost(struct http_request *request);
/* Tells the one who waits for the body, if anybody does. */
void request_body_ended(struct http_request *request, enum http_body_result result);
void request_refuse(struct http_request *request, enum problem_code code);

/* delivery.c. As output_send(), for an answer whose delivery somebody waits to hear of. */
bool delivery_send(struct conn *conn, struct text answer);
/* True: somebody waits to hear that the answer, now written, was acknowledged. */
bool delivery_begin(struct http_request *request);
/* Looks now instead of at the next tick. */
void delivery_poll(struct http_request *request);
/* At the next tick tells whoever waits for the body or the delivery that the request is gone, and whether its answer
 * was acknowledged before. The connection's socket is still open. */
void delivery_tell_lost(struct http_request *request);
void delivery_on_timer(uv_timer_t *timer);
