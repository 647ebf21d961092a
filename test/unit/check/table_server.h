/* Somebody who listens at a table's socket, in a thread, and sends what the test wants: a node, or anything else. */
#pragma once
#include "made_table.h"
#include "process.h"
#include <pthread.h>

enum { TABLE_SERVER_FDS_MAX = 8 };

struct table_server {
    /* To be filled in before the start. */
    const void *greeting; /* what is sent; with no bytes, nothing is */
    size_t greeting_bytes;
    int fds[TABLE_SERVER_FDS_MAX]; /* sent with the first byte */
    size_t fd_count;
    bool closes; /* after it has sent; otherwise connections stay open until table_server_close_peers() */

    char folder[PROCESS_PATH_BYTES];
    char path[PROCESS_PATH_BYTES + 16];
    int socket;
    int wake[2]; /* a pipe */
    pthread_t thread;
    int peers[TABLE_SERVER_FDS_MAX];
    _Atomic size_t peer_count; /* accepted and served */
};

void table_server_start(struct table_server *server);
void table_server_close_peers(struct table_server *server);
/* Also closes the connections and removes the socket. */
void table_server_stop(struct table_server *server);
