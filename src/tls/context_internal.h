/* What contexts of both sides have. */
#pragma once
#include "pem_internal.h"

enum { TLS_OUTDATED_BYTES = 384 };

struct tls_context {
    SSL_CTX *ssl;
    unsigned holds;
    STACK_OF(X509) * pinned; /* a client accepts these and no others; NULL: whatever leads to its CAs */
    int64_t not_after_s;
    char outdated[TLS_OUTDATED_BYTES]; /* why one of its own certificates was not valid when it was read; empty: all
                                          were */
    uint8_t scope[SSL_MAX_SSL_SESSION_ID_LENGTH]; /* a server's: SHA-256 of its service and its client CAs */
    struct pair pairs[TLS_PAIRS_MAX];
    size_t pair_count;
    uint32_t default_pairs; /* a set of indices: what a client gets whose name no pair covers */
    const struct tls_ticket_key *(*find_ticket_key)(void *arg, const uint8_t *name);
    void *arg;
};

/* With the settings of both sides, held once. Never NULL. */
struct tls_context *context_create(const SSL_METHOD *method);
/* Reads the pair into the context. Refuses one that no handshake could use. */
MUST_CHECK bool context_add_pair(struct tls_context *context, const struct tls_pair *pair, struct buf *ret_why);
/* Makes it one of those that each connection begins with. A later pair with the same kind of key replaces it. */
void context_use_pair(struct tls_context *context, size_t index);
