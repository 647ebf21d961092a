/* TLS for http_client. */
#pragma once
#include "certificates.h"
#include "http_client.h"

struct ssl_session_st;

/* NULL and 0 members: the usual. */
struct tls_wish {
    const struct certificate *ca;   /* that the server's must be of */
    const struct certificate *own;  /* the client's; NULL: none */
    const char *name;               /* that is asked for; NULL: "localhost" */
    int version;                    /* 12 or 13: only this */
    const char *protocol;           /* ALPN; NULL: not used */
    struct ssl_session_st *session; /* to be resumed */
};

/* Connects and shakes hands; http_client_* work as usual then. False: one side refused, see tls_client_why(). */
bool tls_client_connect(struct http_client *client, uint16_t port, const struct tls_wish *wish);
/* Shakes hands over an open connection. */
bool tls_client_begin(struct http_client *client, const struct tls_wish *wish);
/* Why the last handshake failed, as far as the client knows. */
const char *tls_client_why(void);
/* The subject of the server's certificate. */
const char *tls_client_server(const struct http_client *client);
bool tls_client_is_resumed(const struct http_client *client);
/* For the next connection. The caller frees it (SSL_SESSION_free). */
struct ssl_session_st *tls_client_session(const struct http_client *client);
/* Sends the end of this side (close_notify), without ending the stream. */
void tls_client_end(struct http_client *client);
