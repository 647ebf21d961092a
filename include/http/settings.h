/* The configuration of a server: limits, timeouts, fixed headers, the handler, and how an error is printed. */
#pragma once
#include "base/text.h"

struct http_request;
struct turn;

/* Errors that this layer answers; the last three digits are the HTTP status. */
enum http_error {
    HTTP_ERROR_NONE = 0,
    HTTP_ERROR_BAD_REQUEST = 400,
    HTTP_ERROR_NOT_FOUND = 404,
    HTTP_ERROR_METHOD_NOT_ALLOWED = 405,
    HTTP_ERROR_REQUEST_TIMEOUT = 408,
    HTTP_ERROR_BODY_TOO_LARGE = 413,
    HTTP_ERROR_URI_TOO_LONG = 414,
    HTTP_ERROR_EXPECTATION_FAILED = 417,
    HTTP_ERROR_HEADERS_TOO_LARGE = 431,
    HTTP_ERROR_INTERNAL = 500,
    HTTP_ERROR_NOT_IMPLEMENTED = 501,
    HTTP_ERROR_OVERLOADED = 503,
    HTTP_ERROR_VERSION = 505,
    HTTP_ERROR_TLS_REQUIRED = 1400, /* also a 400: plain HTTP on a TLS port */
};

enum { HTTP_ID_MAX_BYTES = 32 };

/* Of a server. A node has them as settings (config/settings.h). */
struct http_limits {
    int64_t head_max_bytes;        /* 16 KiB: 431 beyond */
    int64_t fields_max;            /* 100: 431 beyond */
    int64_t target_max_bytes;      /* 8,000: 414 beyond */
    int64_t body_max_bytes;        /* 64 KiB: 413 beyond */
    int64_t head_timeout_ms;       /* 10 s from a request's first byte to the end of its head: 408. Also how long a TLS
                                      handshake may take: closed */
    int64_t body_timeout_ms;       /* 10 s between two bytes of a body: 408. Also how long an unwanted body is discarded
                                      before the connection is closed */
    int64_t body_total_timeout_ms; /* 30 s for the whole body: 408 */
    int64_t body_min_bytes_per_s;  /* 200 on average, checked once body_timeout_ms have passed: else 408 */
    int64_t idle_timeout_ms;       /* 75 s between requests: closed without a response */
    int64_t write_timeout_ms;      /* 30 s in which the peer takes none of the response: closed */
    int64_t write_min_bytes_per_s; /* 1,000 on average in each write_timeout_ms: else closed */
    int64_t waiting_max_bytes;     /* 64 MiB for unfinished requests, as much again for unread responses, over all
                                      connections; beyond, the connection that holds most is cut */
    int64_t connections_max;       /* beyond: the longest idle connection makes room; if none is idle, 503 */
    int64_t tls_handshakes_max;    /* 1,000 in progress; beyond, the one that has waited longest for its peer is closed,
                                      else the new one */
};

struct http_settings {
    struct http_limits limits;
    int64_t body_raised_max_bytes; /* what http_request_raise_body() may raise body_max_bytes to; 0: nothing does */
    bool is_internal;              /* connections are counted under listener="internal", not "public" */
    struct text fixed_headers;     /* complete lines of every response ("A: b\r\n…"); must outlive the server */
    /* Makes the id of a request that arrives at wall_ms. Returns its length, at most HTTP_ID_MAX_BYTES. */
    size_t (*make_id)(int64_t wall_ms, char ret_id[HTTP_ID_MAX_BYTES]);
    /* Replies to a request that http_refuse() or the server itself refuses; header lines that belong to the error are
     * already set. arg is the handler's. NULL: the reply is the bare status. */
    void (*print_error)(struct http_request *request, enum http_error error, void *arg);
    /* If set, each connection must begin with a PROXY header (version 2), whose source address becomes the peer's. Only
     * peers for which this returns true may send one. arg is the handler's. */
    bool (*trusts_proxy)(struct text peer, void *arg);
    /* If set, responses made in one of its slices (base/turn.h) are sent back to back, so that a reader woken by the
     * first is still awake for the others. Must outlive the server. */
    struct turn *turn;
};

/* Called once per request, when its head is complete and well-formed. Before the handler returns, it replies or takes a
 * hold (http/request.h). */
typedef void http_handler(struct http_request *request, void *arg);
