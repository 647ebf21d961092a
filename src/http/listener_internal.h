/* The sockets that a server listens on. */
#pragma once
#include "base/list.h"
#include "http/server.h"

struct listeners {
    uv_loop_t *loop;
    struct list all;
    /* A connected, non-blocking descriptor, which is theirs who are called. */
    void (*accepted)(void *arg, int fd, const struct sockaddr *peer);
    /* A connection could not be accepted: a libuv error. */
    void (*failed)(void *arg, int error);
    void (*none_left)(void *arg); /* whenever the last one was closed */
    void *arg;
};

/* Fills what is not set by then. */
void listeners_init(struct listeners *listeners);
/* As http_server_listen(). */
MUST_CHECK int listeners_add(struct listeners *listeners, const char *address, bool reuse_port,
                             char ret_bound[HTTP_ADDRESS_BYTES]);
void listeners_close(struct listeners *listeners);
