/* The sockets that a server listens on. */
#pragma once
#include "base/list.h"
#include "http/server.h"

struct listeners {
    uv_loop_t *loop;
    struct list all;
    /* Gets a connected, non-blocking descriptor, and owns it. is_local: from listeners_add_socket(). */
    void (*accepted)(void *arg, int fd, const struct sockaddr *peer, bool is_local);
    /* A connection could not be accepted: a libuv error. */
    void (*failed)(void *arg, int error);
    void (*none_left)(void *arg); /* called whenever the last one has closed */
    void *arg;
};

/* Initialises everything that the caller has not set. */
void listeners_init(struct listeners *listeners);
/* See http_server_bind(). */
MUST_CHECK int listeners_bind(struct listeners *listeners, const char *address, bool reuse_port,
                              char ret_bound[HTTP_ADDRESS_BYTES]);
/* See http_server_open(). */
MUST_CHECK int listeners_open(struct listeners *listeners);
/* See http_server_listen_socket(). */
MUST_CHECK int listeners_add_socket(struct listeners *listeners, const char *path);
/* See http_server_look(). */
void listeners_look(struct listeners *listeners);
/* Accepts the connections that wait now; the loop does so later. */
void listeners_accept_waiting(struct listeners *listeners);
void listeners_close(struct listeners *listeners);
