/* Both sides of a TLS connection in memory. */
#pragma once
#include "certificates.h"
#include "tls/session.h"

struct side {
    struct tls_session *session;
    struct buf out;   /* to the other side */
    struct buf plain; /* what has been received */
};

struct peers {
    struct side server, client;
};

/* The CA that signs the usual certificates, made once per process. */
const struct certificate *test_ca(void);
/* One for "localhost" and 127.0.0.1, signed by it. */
const struct certificate *test_server_certificate(void);

/* A server with that certificate and key. */
struct tls_context *server_with(const struct certificate *certificate);
/* A client that trusts the CA. */
struct tls_context *client_of(const struct certificate *ca);

/* The sessions hold both contexts. Without the client's first bytes: peers_begin() makes them. */
void peers_prepare(struct peers *peers, struct tls_context *server, struct tls_context *client, const char *host);
void peers_begin(struct peers *peers);
/* Both of these. */
void peers_open(struct peers *peers, struct tls_context *server, struct tls_context *client, const char *host);
/* Carries bytes back and forth until nobody has any left. */
void peers_talk(struct peers *peers);
void peers_close(struct peers *peers);
bool peers_are_open(const struct peers *peers);
/* Sends a text and checks that it arrives. */
void peers_check_both_ways(struct peers *peers);
