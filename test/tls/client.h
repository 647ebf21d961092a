/* A blocking HTTPS client for measurements, on 127.0.0.1. A connection belongs to one thread at a time; the context may
 * be shared. What goes wrong is told on standard error, the first few times. */
#pragma once
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_PATIENCE_S = 10, CLIENT_REQUEST_BYTES = 1024 };

/* Set by SIGTERM and SIGINT: print what was measured, and end. */
extern volatile sig_atomic_t client_stopped;

struct client {
    SSL *ssl; /* NULL when closed */
    int fd;
    SSL_SESSION *ticket; /* the last one that the server sent; the owner frees it */
};

/* From the environment, where all may be missing or empty:
 *   TLS_CA                 the CA that servers are verified by, as "localhost"; without it, they are not
 *   TLS_CERT, TLS_KEY      the client's own certificate
 *   TLS_VERSION            "1.2": no later version
 * Ends the program on failure. Also makes SIGTERM set client_stopped. */
SSL_CTX *client_context(void);
/* GET $TLS_PATH with $TLS_BEARER, as bytes. Lives as long as the program. */
const char *client_request(void);

/* A TCP connection; -1 on failure. */
int client_connect(uint16_t port);
/* Connects and shakes hands, with a ticket if that is not NULL. Keeps client->ticket. */
bool client_open(struct client *client, SSL_CTX *context, uint16_t port, SSL_SESSION *ticket);
/* Sends a request and reads the response. The status; 0 if there was none. */
int client_ask(struct client *client, const char *request);
/* Says goodbye first. */
void client_close(struct client *client);
/* Drops the connection, so that no port is kept waiting (RFC 9293, TIME-WAIT). */
void client_reset(struct client *client);
void client_reset_socket(int fd);
