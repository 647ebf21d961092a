/* A session on the inside. Only session.c and tests include this. */
#pragma once
#include "context_internal.h"
#include "tls/session.h"

struct tls_session {
    struct tls_context *context;
    SSL *ssl;
    enum tls_state state;
    bool is_ended_by_us;
    int64_t peer_not_after_s; /* of a verified client's certificate; 0: the client has shown none */
    char *peer_name;          /* NULL likewise */
    bool has_ticket_to_send;
    const char *reason; /* a constant of OpenSSL or ours, or: */
    char *detail;       /* why a server's certificate was refused; NULL: it was not */
    struct text input;  /* lent for the time of a call */
    struct buf *out;
};
