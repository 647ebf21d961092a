/* The HTTP/1.1 server (RFC 9112): listener, connections, limits. One per listening purpose; loop thread only. It knows
 * bytes and requests, nothing of keys or Redis. src/http/README.md has the rules that it holds requests to: H1 to H13.
 */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include "http/settings.h"
#include <uv.h>

struct http_server;

struct http_server *http_server_create(uv_loop_t *loop, const struct http_settings *settings, http_handler *handler,
                                       void *arg);
/* "host:port" or "[v6]:port", addresses, not names. 0, or a libuv error. */
MUST_CHECK int http_address_read(struct text address, struct sockaddr_storage *ret_address);
/* Binds and listens on "host:port", "[v6]:port" (addresses, not names; port 0: any) or "unix:/path". 0 or a libuv
 * error. ret_bound gets the address in the same form with the true port. */
enum { HTTP_ADDRESS_BYTES = 128 };
MUST_CHECK int http_server_listen(struct http_server *server, const char *address, bool reuse_port,
                                  char ret_bound[HTTP_ADDRESS_BYTES]);
/* Stops accepting and closes idle connections; every answer from now on carries Connection: close. drained runs once,
 * later, when no connection is left, at the latest after grace_ms (what is still open then is cut). */
void http_server_drain(struct http_server *server, int64_t grace_ms, void (*drained)(void *arg), void *arg);
/* Cuts what is open, frees. closed runs once, later, when the last request that a handler still holds was released;
 * the server is gone then. */
void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *server);
