#include "notify_socket.h"

#include "deadline.h"
#include "process.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_socket_open(struct notify_socket *notify, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);

    if (length >= sizeof address.sun_path)
        test_give_up("%s is too long for a socket", name);
    snprintf(notify->path, sizeof notify->path, "%s", name);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd < 0 || bind(notify->fd, (const struct sockaddr *)&address,
                               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) != 0)
        test_give_up("cannot bind %s", name);
    setenv("NOTIFY_SOCKET", name, 1);
}

bool notify_socket_read(const struct notify_socket *notify, int timeout_ms, char ret_message[NOTIFY_MESSAGE_BYTES])
{
    struct pollfd waited = {.fd = notify->fd, .events = POLLIN};

    if (poll(&waited, 1, timeout_ms) != 1)
        return false;
    ssize_t got = recv(notify->fd, ret_message, NOTIFY_MESSAGE_BYTES - 1, 0);
    ret_message[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool has_line(const char *message, const char *line)
{
    size_t length = strlen(line);

    for (const char *at = message; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, length) == 0 && (line[length - 1] == '=' || at[length] == '\n' || at[length] == '\0'))
            return true;
    }
    return false;
}

bool notify_socket_await(const struct notify_socket *notify, const char *line, char ret_message[NOTIFY_MESSAGE_BYTES])
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (notify_socket_read(notify, deadline_left_ms(deadline), ret_message))
        if (has_line(ret_message, line))
            return true;
    return false;
}

void notify_socket_drain(const struct notify_socket *notify)
{
    char message[NOTIFY_MESSAGE_BYTES];

    while (notify_socket_read(notify, 0, message))
        continue;
}

void notify_socket_close(struct notify_socket *notify)
{
    close(notify->fd);
    if (notify->path[0] != '@')
        unlink(notify->path);
    unsetenv("NOTIFY_SOCKET");
}
