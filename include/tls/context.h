/* Shared by the TLS connections of one side: certificates, keys, trust. TLS 1.2 and 1.3 (RFC 5246, RFC 8446) as RFC
 * 9325 recommends: forward secrecy and authenticated encryption only, no compression, no renegotiation, no early data.
 *
 * Contexts know no files: they get the content of PEM files, and the names by which errors call them. On failure each
 * function returns NULL, with one sentence in ret_why. A context is reference-counted, so that it can be replaced while
 * connections live on it. Loop thread only. */
#pragma once
#include "base/text.h"

struct tls_context;

/* Neither is kept. A set of certificates that was named holds one at least: an empty file is refused, and never taken
 * for a set that was not named. */
struct tls_pem {
    const char *name; /* such as "--tls-cert /etc/chatelaine/tls.pem"; NULL: there is no such file */
    struct text content;
};

struct tls_pair {
    struct tls_pem certificates; /* the server's or client's own first, then those that lead to its CA */
    struct tls_pem key;          /* without a passphrase */
};

enum { TLS_PAIRS_MAX = 32, TLS_TICKET_NAME_BYTES = 16, TLS_TICKET_KEY_BYTES = 32 };

/* Keys that seal session tickets (RFC 5077, section 4): AES-256-CBC and HMAC-SHA-256. */
struct tls_ticket_key {
    uint8_t name[TLS_TICKET_NAME_BYTES]; /* sent in clear with each ticket */
    uint8_t cipher_key[TLS_TICKET_KEY_BYTES], mac_key[TLS_TICKET_KEY_BYTES];
};

struct tls_server_settings {
    /* A client gets the pairs that cover the name it asks for; if none does or it names none, the first pair. If
     * several do, it gets the one whose kind of key it supports. 1 to TLS_PAIRS_MAX. */
    const struct tls_pair *pairs;
    size_t pair_count;
    /* If it has a name, clients are asked for a certificate from one of these CAs. One that has none may connect
     * (tls_session_peer()); one whose certificate is not valid may not. */
    struct tls_pem client_ca;
    /* Tickets of one service are not accepted by another. Must be the same on all nodes. */
    struct text service;
    /* The key with that name, or, if name is NULL, the one that seals new tickets. NULL: tickets with that name are no
     * longer accepted. The key must last until the next call. If this function is NULL, no session is resumed. */
    const struct tls_ticket_key *(*find_ticket_key)(void *arg, const uint8_t *name);
    void *arg;
};

/* A ticket is accepted for this long. A resumed connection gets the next one, so a session lasts for as long as its
 * client comes back in time; a client's certificate ends it when it expires. */
enum { TLS_TICKET_LIFETIME_S = 3600 };

/* A certificate whose key is another one is refused. One that has expired or is not valid yet is used: clients decide,
 * and what else the node serves goes on (tls_context_outdated()). Negotiates "http/1.1" with clients that use ALPN (RFC
 * 7301), and refuses those that offer only other protocols. */
struct tls_context *tls_context_create_server(const struct tls_server_settings *settings, struct buf *ret_why);

struct tls_client_settings {
    struct tls_pem ca;           /* the CAs that servers are verified by; without a name: those of the system */
    const struct tls_pair *pair; /* to identify itself with; NULL: none */
};

/* One's own pair must be valid by this machine's clock. Every server is verified: its certificate must lead to a CA and
 * cover the name that was connected to (RFC 9525). */
struct tls_context *tls_context_create_client(const struct tls_client_settings *settings, struct buf *ret_why);

/* For a client that has the server's own certificate file: accepts the first certificate of any of these files and
 * nothing else, whatever its names and however old it is. */
struct tls_context *tls_context_create_pinned(const struct tls_pem *certificates, size_t count, struct buf *ret_why);

/* When the first of its own certificates expires, in seconds since 1970; 0: it has none. */
int64_t tls_context_not_after_s(const struct tls_context *context);
/* Why the first of its own certificates that was not valid when it was read is not: file, reason and remedy, in one
 * sentence without a full stop, which lives as long as the context. NULL: all were valid. */
const char *tls_context_outdated(const struct tls_context *context);

struct tls_context *tls_context_hold(struct tls_context *context);
/* NULL is fine. */
void tls_context_release(struct tls_context *context);
