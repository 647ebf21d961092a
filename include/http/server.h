/* The HTTP/1.1 server (design 7): listener, connections, limits. One per listening purpose; loop thread only.
 * It knows bytes and requests, nothing of keys or Redis. */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include <uv.h>

struct http_request;
struct http_server;
struct problem;

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
    /* NULL, or: what the server refuses by itself, for its head or for want of room, as it is about to be answered. May
     * change the problem and add headers. arg is the handler's. */
    void (*mark_refusal)(struct http_request *request, struct problem *problem, void *arg);
};

/* Called once for each request, when its head is complete and well-formed. Before it returns, the handler has replied
 * or taken a hold (http/request.h). */
typedef void http_handler(struct http_request *request, void *arg);

struct http_server *http_server_create(uv_loop_t *loop, const struct http_settings *settings, http_handler *handler,
                                       void *arg);
/* "host:port" or "[v6]:port", addresses, not names. 0, or a libuv error. */
MUST_CHECK int http_address_read(struct text address, struct sockaddr_storage *ret_address);
/* Binds and listens on "host:port", "[v6]:port" (addresses, not names; port 0: any) or "unix:/path". 0 or a libuv
 * error. ret_bound gets the address in the same form with the true port. */
enum { HTTP_ADDRESS_BYTES = 128 };
MUST_CHECK int http_server_listen(struct http_server *server, const char *address, bool reuse_port,
                                  char ret_bound[HTTP_ADDRESS_BYTES]);
/* Between the two, answers wait, some of them at most, and then leave one after the other: a reader that the first of
 * them has woken is still awake for the next ones. What began outside of them goes out as ever. */
void http_server_cork(struct http_server *server);
void http_server_uncork(struct http_server *server);
/* Stops accepting and closes idle connections; every answer from now on carries Connection: close. drained runs once,
 * later, when no connection is left, at the latest after grace_ms (what is still open then is cut). */
void http_server_drain(struct http_server *server, int64_t grace_ms, void (*drained)(void *arg), void *arg);
/* Cuts what is open, frees. closed runs once, later, when the last request that a handler still holds was released;
 * the server is gone then. */
void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *server);
