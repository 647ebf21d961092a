/* A request and what refers to it: its connection, its handlers (holds), and we ourselves while it is on our stack or
 * in one of our lists (pins). It is freed, wiped, to be used again, when nobody is left. */
#pragma once
#include "delivery_internal.h"
#include "http/request.h"
#include "parser_internal.h"

#include <netinet/in.h>

/* Head, field table and reply lines of an ordinary request fit. */
enum { REQUEST_FIRST_BYTES = 4096 };

struct answers;
struct conn;

/* What the requests of a server share. */
struct requests {
    uv_loop_t *loop;
    const struct http_settings *settings;
    http_handler *handler;
    void *handler_arg;
    struct answers *answers; /* response.c: how they are answered */
    struct deliveries deliveries;
    void (*want_body)(struct conn *conn);
    void (*none_left)(void *arg);
    void *arg;
    size_t count; /* not yet freed, connected or not: a handler may outlive its connection */
    struct list spares;
    size_t spare_count, spares_max;
    int64_t wall_ms; /* as of the loop's turn that began at wall_read_ms of the loop's own clock */
    uint64_t wall_read_ms;
};

struct reply_line {
    struct reply_line *next;
    struct text line;
};

struct http_request {
    struct list in_spares;
    struct requests *all;
    struct conn *conn; /* NULL once it is gone, or has gone on to the next request */
    unsigned holds, pins;
    bool is_gone;
    bool is_replied;
    bool must_close;
    bool has_sent_continue;
    enum http_method method;
    char id[HTTP_ID_MAX_BYTES];
    size_t id_bytes;
    char peer[INET6_ADDRSTRLEN];
    struct text head_bytes;
    struct http_head head;
    struct http_parser parser;
    struct buf body;
    http_body_done *body_done;
    void *body_arg;
    struct reply_line *first_line, **last_line;
    struct text fixed_headers; /* {NULL, 0}: the server's */
    struct delivery delivery;
    struct arena arena;
    _Alignas(16) char first_block[REQUEST_FIRST_BYTES];
};

/* Fills what is not set by then. settled: as deliveries_init() has it. none_left is called whenever the last request
 * was freed. */
void requests_init(struct requests *requests, void (*settled)(struct delivery *delivery, bool is_delivered));
/* The server closes: what is freed from now on is not kept. */
void requests_keep_none(struct requests *requests);

/* Pinned once, for the connection. peer is copied. */
struct http_request *request_create(struct requests *requests, struct conn *conn, const char peer[INET6_ADDRSTRLEN]);
void request_pin(struct http_request *request);
void request_unpin(struct http_request *request);
/* Copies the head and parses it. */
enum http_error request_read_head(struct http_request *request, struct text bytes, size_t lines);
/* Calls the handler and holds it to its contract. */
void request_dispatch(struct http_request *request);
/* The connection has failed. Whoever waits is told at the next tick: request_end_lost(). */
void request_lost(struct http_request *request);
void request_end_lost(struct http_request *request, bool was_delivered);
/* Tells the one who waits for the delivery, if anybody does. */
void request_end_delivery(struct http_request *request, bool is_delivered);
/* Tells the one who waits for the body, if anybody does. */
void request_body_ended(struct http_request *request, enum http_body_result result);
