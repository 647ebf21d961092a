/* One request, from the moment its head is complete. The contract of handlers:
 *
 * 1. Every operation that is started completes exactly once.
 * 2. It never completes inside the call that starts it.
 * 3. A handler replies or takes a hold before it returns. The reply comes before the last hold is released. Both are
 *    checked.
 * 4. An operation's memory comes from the request's arena. Secrets register a wipe with http_request_defer().
 * 5. Once the client is gone, the request is inert: holds still work, replies do nothing, http_request_gone() is true.
 * 6. A store call is done, refused or unknown. Unknown is not failure.
 * 7. Handlers set no timeouts: the store always answers within its own.
 * 8. Handlers see neither libuv nor hiredis. */
#pragma once
#include "base/arena.h"
#include "base/attr.h"
#include "base/text.h"

struct http_request;

/* All methods that any resource may support, in the form of Allow. */
#define HTTP_METHODS_ALLOWED "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_CONNECT,
    HTTP_TRACE,
    HTTP_OTHER, /* known, but served nowhere: 405 */
};

static inline bool http_method_is_read(enum http_method method)
{
    return method == HTTP_GET || method == HTTP_HEAD;
}

/* Gateways name the method and target of another request in headers. These two apply the rules for a request line to
 * them (H3, H4). False: the method is unknown (501). */
MUST_CHECK bool http_method_read(struct text name, enum http_method *ret_method);
/* Splits a target at its first '?'; *ret_query is {NULL, 0} if there is none. Checks its bytes and the escapes in its
 * path, not its form or length. Escapes in the query are left to the code that reads its parameters. */
MUST_CHECK bool http_target_read(struct text target, struct text *ret_path, struct text *ret_query);
/* Only splits it. */
void http_target_split(struct text target, struct text *ret_path, struct text *ret_query);

enum http_method http_request_method(const struct http_request *request);
/* The target as sent, query included. Path and query are its parts; in absolute-form, those after the authority.
 * Nothing is decoded. */
struct text http_request_target(const struct http_request *request);
struct text http_request_path(const struct http_request *request);
struct text http_request_query(const struct http_request *request);
/* The value of the first field of that name, without surrounding blanks, and the number of such fields: {NULL, 0} and 0
 * if there is none. */
struct text http_request_header(const struct http_request *request, struct text name, size_t *ret_count);
/* The n-th of them, counted from 0; {NULL, 0} beyond the last. */
struct text http_request_header_at(const struct http_request *request, struct text name, size_t n);
/* The server's own id of this request, sent as X-Request-Id. */
struct text http_request_id(const struct http_request *request);
/* clock_wall_ms(), read once per turn of the loop. */
int64_t http_request_wall_ms(const struct http_request *request);
/* Nanoseconds since the head was complete, by the turn clock (base/turn_clock.h). */
uint64_t http_request_age_ns(const struct http_request *request);
/* The peer's address without its port: "192.0.2.1", "2001:db8::1", "unix"; or the one in the connection's PROXY header.
 */
struct text http_request_peer(const struct http_request *request);
/* Whether the client has proved to hold a certificate of the server's client CA. */
bool http_request_has_client_certificate(const struct http_request *request);
/* The name of that certificate (tls_session_peer_name()); empty if it has shown none, or speaks no TLS. Valid until the
 * handler returns, and empty later. */
struct text http_request_client_name(const struct http_request *request);
bool http_request_has_body(const struct http_request *request);
/* Raises this request's body limit before the body is read, at most to http_settings.body_raised_max_bytes. Only for a
 * request whose credential was checked: strangers get little memory. */
void http_request_raise_body(struct http_request *request, size_t max_bytes);
/* Lowers this request's body limit (http_limits.body_max_bytes) before the body is read. False: its Content-Length
 * exceeds the limit. */
MUST_CHECK bool http_request_limit_body(struct http_request *request, size_t max_bytes);

/* Lives until the request is freed. */
void *http_request_alloc(struct http_request *request, size_t bytes);
struct text http_request_copy(struct http_request *request, struct text t);
void http_request_defer(struct http_request *request, void (*fn)(void *arg), void *arg);

void http_request_hold(struct http_request *request);
void http_request_release(struct http_request *request);
/* The client's connection has failed or was closed, so nothing can be delivered. A client that has only stopped sending
 * (half-close) is not gone. */
bool http_request_gone(const struct http_request *request);
/* It is gone, or sends nothing more than what has arrived. One that always waits for its response, as gateways do, has
 * given up. Known when the head is dispatched, even if the client ended while this process was stopped. */
bool http_request_given_up(const struct http_request *request);

/* Reads the whole body, sending 100 Continue if the client expects it, then calls done exactly once, later.
 * HTTP_BODY_FAILED: the request has been answered (408, 413, 400) or the client is gone; release your holds and return.
 * The body is wiped when the request is freed. The request is held for the caller until done returns. */
enum http_body_result { HTTP_BODY_OK, HTTP_BODY_FAILED };
typedef void http_body_done(void *arg, enum http_body_result result, struct text body);
void http_request_read_body(struct http_request *request, http_body_done *done, void *arg);
