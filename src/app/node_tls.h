/* TLS of a node's two listeners. */
#pragma once
#include "config/settings.h"
#include "listener_tls.h"

/* Zeroed: both listeners are plain. */
struct node_tls {
    struct ticket_keys *tickets;
    struct listener_tls *public, *internal; /* NULL: plain */
};

/* What is wrong with the settings, the listeners' files included: false, with one sentence in ret_why. */
MUST_CHECK bool node_tls_validate_client_ca(const struct settings *settings, struct buf *ret_why);
MUST_CHECK bool node_tls_validate_public(const struct settings *settings, struct buf *ret_why);
MUST_CHECK bool node_tls_validate_internal(const struct settings *settings, struct buf *ret_why);
/* After those checks. False: with one sentence in ret_why. */
MUST_CHECK bool node_tls_open(struct node_tls *tls, uv_loop_t *loop, const struct settings *settings,
                              struct keyring *keyring, struct buf *ret_why);
/* The node's servers, of which one listens already or will. */
void node_tls_begin(struct node_tls *tls, struct http_server *public_server, struct http_server *internal_server);
void node_tls_reload(struct node_tls *tls);
/* For a report: an array of what listener_tls_put() says. */
void node_tls_put(const struct node_tls *tls, struct json_writer *w);
/* Returns how often closed will run, later. */
unsigned node_tls_close(struct node_tls *tls, void (*closed)(void *arg), void *arg);
/* Once everything is closed. */
void node_tls_finish(struct node_tls *tls);
