/* A client for commands: one connection, one request, one response. It blocks, so it is never for a loop. It follows no
 * redirect and repeats nothing. */
#pragma once
#include "base/text.h"
#include "http/message.h"
#include <sys/socket.h>

struct tls_context;

struct http_call_peer {
    struct sockaddr_storage address;
    socklen_t address_bytes;
    struct tls_context *tls; /* NULL: plain HTTP. The caller's */
    const char *host;        /* that the peer's certificate must cover (tls_session_connect()) */
};

enum http_call_result {
    HTTP_CALL_ANSWERED,
    HTTP_CALL_SILENT,  /* connected, but no whole response within the time */
    HTTP_CALL_REFUSED, /* it did not let us connect, or its certificate is refused */
    HTTP_CALL_FAILED,  /* the connection ended without a whole response, or it was none */
};

/* Sends these bytes, which need not be a whole request, and takes the response into the message, which was initialised
 * for one. Connection, handshake and response together may take patience_ms. Unless it was answered, ret_why gets a
 * phrase: "Connection refused". */
MUST_CHECK enum http_call_result http_call_make(const struct http_call_peer *peer, struct text request,
                                                int64_t patience_ms, struct http_message *response,
                                                struct buf *ret_why);
