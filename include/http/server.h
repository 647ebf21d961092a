/* The HTTP/1.1 server (RFC 9112): listening sockets, connections, limits. A node has one for its public and one for its
 * internal listener. It knows bytes and requests, but neither keys nor Redis. src/http/README.md has its rules for
 * requests, H1 to H13. Loop thread only. */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include "http/settings.h"
#include <uv.h>

struct http_server;
struct tls_context;

struct http_server *http_server_create(uv_loop_t *loop, const struct http_settings *settings, http_handler *handler,
                                       void *arg);
/* Reads "host:port" or "[v6]:port"; the host is an address, not a name. 0, or a libuv error. */
MUST_CHECK int http_address_read(struct text address, struct sockaddr_storage *ret_address);
/* A socket (socket(2)) for that address. Where IPv6 is off, "[::]" becomes "0.0.0.0" there: all addresses that there
 * are. -1 with errno. */
MUST_CHECK int http_address_socket(struct sockaddr_storage *address, int type);
/* Binds "host:port", "[v6]:port" (addresses, not names; port 0: any free one) or "unix:/path". 0, or a libuv error.
 * ret_bound receives the address in the same form, with the actual port. Connections are refused until
 * http_server_open(), as if nobody were there: a gateway turns to another node and has sent nothing. Only a Unix socket
 * is open at once. */
enum { HTTP_ADDRESS_BYTES = 128 };
MUST_CHECK int http_server_bind(struct http_server *server, const char *address, bool reuse_port,
                                char ret_bound[HTTP_ADDRESS_BYTES]);
/* Listens at what is bound. 0, or a libuv error: UV_EADDRINUSE if another program has come first. */
MUST_CHECK int http_server_open(struct http_server *server);
/* Both. */
MUST_CHECK int http_server_listen(struct http_server *server, const char *address, bool reuse_port,
                                  char ret_bound[HTTP_ADDRESS_BYTES]);
/* Listens on a Unix socket as well. Connections are plain, without a PROXY header, and count as verified: the file's
 * permissions say who may connect. 0, or a libuv error. Files of Unix sockets, of this and of http_server_listen(), are
 * as unix_socket_listen() makes them, and removed when the server stops listening. */
MUST_CHECK int http_server_listen_socket(struct http_server *server, const char *path);
/* Call each second: a socket whose file was removed or replaced is made again. Until then nobody can connect. */
void http_server_look(struct http_server *server);
/* From now on, new connections speak TLS with this context, which is held. Those that have begun stay as they are, so a
 * renewed certificate cuts none. With other client CAs, the connections of clients that had shown a certificate end:
 * idle ones and streams at once, others after the response. They also end at the next request or piece of a stream once
 * that certificate has expired. */
void http_server_set_tls(struct http_server *server, struct tls_context *tls);
/* From now on every response says that it closes its connection (RFC 9112, 9.6), and a connection without a request is
 * closed after quiet_ms. New connections are accepted. May be called once, before http_server_drain(). */
void http_server_wane(struct http_server *server, int64_t quiet_ms);
struct http_drain {
    int64_t grace_ms;
    int64_t quiet_ms; /* at most half of grace_ms */
    void (*late)(void *arg);
    void (*drained)(void *arg);
    void *arg;
};
/* Wanes, and stops listening once no connection has been open for quiet_ms, but not within 2 * quiet_ms, so that a
 * gateway that looks at /readyz every quiet_ms has seen it; then drained runs, once, later. If some are still used,
 * late runs quiet_ms before the grace ends, for a handler that then refuses what is new. The server stops listening
 * quiet_ms / 2 before the grace ends. Connections that are open when it ends are cut. */
void http_server_drain(struct http_server *server, const struct http_drain *drain);
/* Cuts all connections and frees the server. closed runs once, later, after handlers have released their last request;
 * by then the server is freed. */
void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *server);
