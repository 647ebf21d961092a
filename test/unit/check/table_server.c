#include "table_server.h"
#include "base/check.h"
#include <poll.h>
#include <stdio.h>

static void send_greeting(const struct table_server *server, int peer)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof server->fds)];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)server->greeting, server->greeting_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (server->greeting_bytes == 0)
        return;
    if (server->fd_count > 0) {
        size_t bytes = server->fd_count * sizeof(int);
        struct cmsghdr *header = &control.align;

        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(bytes);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(header), server->fds, bytes);
    }
    CHECK(sendmsg(peer, &message, MSG_NOSIGNAL) == (ssize_t)server->greeting_bytes || errno == EPIPE);
}

static void *serve(void *arg)
{
    struct table_server *server = arg;
    struct pollfd polled[2] = {{.fd = server->wake[0], .events = POLLIN}, {.fd = server->socket, .events = POLLIN}};

    for (;;) {
        int peer;

        CHECK(poll(polled, 2, -1) > 0);
        if (polled[0].revents)
            return NULL;
        peer = accept4(server->socket, NULL, NULL, SOCK_CLOEXEC);
        CHECK(peer >= 0 && atomic_load(&server->peer_count) < TABLE_SERVER_FDS_MAX);
        send_greeting(server, peer);
        if (server->closes)
            close(peer);
        server->peers[atomic_load(&server->peer_count)] = server->closes ? -1 : peer;
        atomic_fetch_add(&server->peer_count, 1);
    }
}

void table_server_start(struct table_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    atomic_store(&server->peer_count, 0);
    folder_make(server->folder);
    snprintf(server->path, sizeof server->path, "%s/table.sock", server->folder);
    CHECK(strlen(server->path) < sizeof address.sun_path);
    memcpy(address.sun_path, server->path, strlen(server->path));
    server->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(server->socket >= 0 && bind(server->socket, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(server->socket, TABLE_SERVER_FDS_MAX) == 0 && pipe2(server->wake, O_CLOEXEC) == 0);
    CHECK(pthread_create(&server->thread, NULL, serve, server) == 0);
}

void table_server_close_peers(struct table_server *server)
{
    for (size_t i = 0; i < atomic_load(&server->peer_count); i++) {
        if (server->peers[i] >= 0)
            close(server->peers[i]);
        server->peers[i] = -1;
    }
}

void table_server_stop(struct table_server *server)
{
    CHECK(write(server->wake[1], "x", 1) == 1 && pthread_join(server->thread, NULL) == 0);
    table_server_close_peers(server);
    close(server->socket);
    close(server->wake[0]);
    close(server->wake[1]);
    folder_remove(server->folder);
}
