/* One request, from the moment its head is complete. The contract of handlers:
 *
 * 1. An operation that is started completes exactly once.
 * 2. It never completes inside the call that starts it.
 * 3. A handler, before it returns, has either replied or taken a hold; a continuation that releases the last hold has
 *    replied. Both are checked.
 * 4. Memory of an operation comes from the request's arena; secrets register a wipe with http_request_defer().
 * 5. When the client is gone the request is inert: holds still work, replies do nothing, http_request_gone() says so.
 * 6. What a store call answers has three families: done, refused, and unknown. Unknown is not failure.
 * 7. Deadlines belong to us: the store always answers within its limit.
 * 8. Handlers see neither libuv nor hiredis. */
#pragma once
#include "base/arena.h"
#include "base/attr.h"
#include "base/text.h"

struct http_request;

/* Those that a resource may have at all, as in Allow. */
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
    HTTP_OTHER, /* known, of no meaning here: 405 */
};

/* What a gateway says of another request is held to the rules for a request line (H3, H4). False: the name is none that
 * is known, which is 501. */
MUST_CHECK bool http_method_read(struct text name, enum http_method *ret_method);
/* The bytes of a request target, and the escapes of its path; not its form, not its length. Of a query no escape is
 * looked at: whoever reads its parameters does. */
MUST_CHECK bool http_target_is_sound(struct text target);
/* Splits it at its first '?'; *ret_query is {NULL, 0} where there is none. */
void http_target_split(struct text target, struct text *ret_path, struct text *ret_query);

enum http_method http_request_method(const struct http_request *request);
struct text http_request_method_text(const struct http_request *request);
/* As it was sent, query included; path and query are its parts (origin-form; of absolute-form the part behind the
 * authority). Not decoded. */
struct text http_request_target(const struct http_request *request);
struct text http_request_path(const struct http_request *request);
struct text http_request_query(const struct http_request *request);
/* The value of the first field of that name, blanks trimmed, and how many there are. {NULL, 0} and 0 where none. */
struct text http_request_header(const struct http_request *request, struct text name, size_t *ret_count);
/* The n-th of them, from 0; {NULL, 0} where there are fewer. */
struct text http_request_header_at(const struct http_request *request, struct text name, size_t n);
/* The server's own id of this request, as answered in X-Request-Id. */
struct text http_request_id(const struct http_request *request);
/* clock_wall_ms() as of the turn of the loop, which spares reading the clock. */
int64_t http_request_wall_ms(const struct http_request *request);
/* The peer's address without its port: "192.0.2.1", "2001:db8::1", "unix". */
struct text http_request_peer(const struct http_request *request);
bool http_request_has_body(const struct http_request *request);
/* Lowers the limit of the body (http_settings.body_max_bytes) for this request, before it is read. False: it was
 * announced to be larger. */
MUST_CHECK bool http_request_limit_body(struct http_request *request, size_t max_bytes);

/* Lives until the request is freed. */
void *http_request_alloc(struct http_request *request, size_t bytes);
struct text http_request_copy(struct http_request *request, struct text t);
void http_request_defer(struct http_request *request, void (*fn)(void *arg), void *arg);

void http_request_hold(struct http_request *request);
void http_request_release(struct http_request *request);
/* The client's connection has failed or was closed: nothing can be delivered any more. A mere end of what it sends
 * (half-close) does not count. */
bool http_request_gone(const struct http_request *request);

/* Reads the whole body (sending 100 Continue where it is expected), then calls done, exactly once, later. On
 * HTTP_BODY_FAILED the request has been answered (408, 413, 400) or the client is gone: release what is held and
 * return. The body is wiped when the request is freed. The request is held for the caller until done returns. */
enum http_body_result { HTTP_BODY_OK, HTTP_BODY_FAILED };
typedef void http_body_done(void *arg, enum http_body_result result, struct text body);
void http_request_read_body(struct http_request *request, http_body_done *done, void *arg);
