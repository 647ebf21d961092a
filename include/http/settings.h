/* What the owner of a server decides: its limits, timeouts and fixed headers, who handles its requests, and how an
 * error is printed. */
#pragma once
#include "base/text.h"

struct http_request;
struct turn;

/* Errors that this layer answers with, each by its status. */
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
};

enum { HTTP_ID_MAX_BYTES = 32 };

struct http_settings {
    int64_t head_max_bytes;   /* 16 KiB: 431 beyond */
    int64_t fields_max;       /* 100: 431 beyond */
    int64_t target_max_bytes; /* 8,000: 414 beyond */
    int64_t body_max_bytes;   /* 64 KiB: 413 beyond */
    int64_t head_timeout_ms;  /* 10 s from a request's first byte to the end of its head: 408 */
    int64_t body_timeout_ms;  /* 10 s without a byte of the body: 408; a body that nobody wants is cut after that */
    int64_t body_total_timeout_ms; /* 30 s for the whole body: 408 */
    int64_t body_min_bytes_per_s;  /* 200 on average, once body_timeout_ms have passed, else 408 */
    int64_t idle_timeout_ms;       /* 75 s between requests: closed without a word */
    int64_t write_timeout_ms;      /* 30 s without a byte of the answer taken: closed */
    int64_t write_min_bytes_per_s; /* 1,000 on average, in each write_timeout_ms: closed below */
    int64_t waiting_max_bytes;     /* 64 MiB for requests that have not come whole, as much for answers that are not
                                      read, on all connections; beyond, whoever holds most is cut */
    int64_t connections_max;       /* beyond: shed with 503 and closed */
    struct text fixed_headers;     /* complete lines that every answer carries ("A: b\r\n…"); outlive the server */
    /* Makes the id of a request that comes at that time: its length, at most HTTP_ID_MAX_BYTES. */
    size_t (*make_id)(int64_t wall_ms, char ret_id[HTTP_ID_MAX_BYTES]);
    /* NULL, or: replies to a request that http_refuse() or the server itself refuses; header lines that belong to the
     * error are set by then. Without it, the reply is the status alone. arg is the handler's. */
    void (*print_error)(struct http_request *request, enum http_error error, void *arg);
    /* NULL, or: answers of one of its slices (base/turn.h) leave one after the other, so that a reader that the first
     * of them has woken is still awake for the next ones. It outlives the server. */
    struct turn *turn;
};

/* Called once for each request, when its head is complete and well-formed. Before it returns, the handler has replied
 * or taken a hold (http/request.h). */
typedef void http_handler(struct http_request *request, void *arg);
