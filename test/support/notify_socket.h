/* The socket at which systemd would hear a service (sd_notify(3)). */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct notify_socket {
    int fd;
    char path[108]; /* '@' and a name if abstract */
};

enum { NOTIFY_MESSAGE_BYTES = 2048 };

/* Binds it and sets NOTIFY_SOCKET. name: a path, or '@' and a name. Aborts the test if it cannot. */
void notify_socket_open(struct notify_socket *notify, const char *name);
/* The next message; false if none comes within timeout_ms. */
bool notify_socket_read(const struct notify_socket *notify, int timeout_ms, char ret_message[NOTIFY_MESSAGE_BYTES]);
/* Reads until a message has this line, or a line that begins so if it ends with '='; false if none comes in time. */
bool notify_socket_await(const struct notify_socket *notify, const char *line, char ret_message[NOTIFY_MESSAGE_BYTES]);
/* Drops what has been sent so far. */
void notify_socket_drain(const struct notify_socket *notify);
void notify_socket_close(struct notify_socket *notify);
