/* A request lives as long as something refers to it: handlers by holds; its connection by a pin, and this layer by
 * further pins while it works on the request or waits for its delivery. Then it is wiped and freed, or kept for
 * reuse. */
#pragma once
#include "delivery_internal.h"
#include "http/request.h"
#include "parser_internal.h"

#include <netinet/in.h>

/* The head, field table and reply lines of an ordinary request fit into first_block. */
enum { REQUEST_FIRST_BYTES = 4096 };

struct answers;
struct conn;

/* What the requests of a server share. */
struct requests {
    uv_loop_t *loop;
    const struct http_settings *settings;
    http_handler *handler;
    void *handler_arg;
    struct answers *answers; /* what their responses share (response.c) */
    struct deliveries deliveries;
    void (*want_body)(struct conn *conn);
    void (*end_stream)(struct conn *conn); /* all of the body has been sent */
    void (*reset)(struct conn *conn);
    void (*none_left)(void *arg);
    void *arg;
    size_t count; /* not yet freed, connected or not: a handler may outlive its connection */
    struct list spares;
    size_t spare_count, spares_max;
    int64_t wall_ms; /* read in the turn that began at wall_read_ms, by the loop's clock */
    uint64_t wall_read_ms;
};

/* Somebody who is told when the reply begins. */
struct replied_hook {
    struct replied_hook *next;
    void (*run)(void *arg, int status);
    void *arg;
};

struct reply_line {
    struct reply_line *next;
    struct text line;
};

/* A response whose body is made while it is sent (http/stream.h). */
struct stream {
    bool is_open; /* its end has not been sent */
    bool is_chunked;
    void (*drained)(void *arg); /* NULL: no piece is on its way */
    void *arg;
};

struct http_request {
    struct list in_spares;
    struct requests *all;
    struct conn *conn; /* NULL once it is closed or has moved on to its next request */
    unsigned holds, pins;
    uint64_t arrived_ns; /* by the turn clock */
    bool is_gone;
    bool is_replied;
    bool must_close;
    bool has_sent_continue;
    bool has_verified_peer;
    bool has_whole_input;    /* the peer sends nothing more */
    struct text client_name; /* of its certificate; lives as long as conn */
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
    struct text fixed_headers;    /* {NULL, 0}: the server's */
    struct replied_hook *replied; /* NULL: nobody asks */
    struct delivery delivery;
    struct stream stream;
    struct arena arena;
    _Alignas(16) char first_block[REQUEST_FIRST_BYTES];
};

/* Initialises everything that the caller has not set. settled: see deliveries_init(). none_left is called whenever the
 * last request has been freed. */
void requests_init(struct requests *requests, void (*settled)(struct delivery *delivery, bool is_delivered));
/* The server is closing: from now on, no freed request is kept for reuse. */
void requests_keep_none(struct requests *requests);

/* Pinned once, for its connection. peer is copied. */
struct http_request *request_create(struct requests *requests, struct conn *conn, const char peer[INET6_ADDRSTRLEN]);
void request_pin(struct http_request *request);
void request_unpin(struct http_request *request);
/* Copies the head and parses it. */
enum http_error request_read_head(struct http_request *request, struct text bytes, size_t lines);
/* Calls the handler and checks that it kept its contract. */
void request_dispatch(struct http_request *request);
/* The connection has failed. Whoever waits is called back at the next tick, by request_end_lost(). */
void request_lost(struct http_request *request);
void request_end_lost(struct http_request *request, bool was_delivered);
/* Calls back whoever waits for the delivery, if anybody does. */
void request_end_delivery(struct http_request *request, bool is_delivered);
/* Calls back whoever waits until a piece of a stream has been taken, if anybody does. */
void request_stream_drained(struct http_request *request);
/* Calls back whoever waits for the body, if anybody does. */
void request_body_ended(struct http_request *request, enum http_body_result result);
