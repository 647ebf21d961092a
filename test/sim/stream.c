/* Bytes, and the end of sockets. */
#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "socket_internal.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Ending */

/* The peer reads what it has, then that it was reset. */
static void leave_peer(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;

    if (!peer)
        return;
    peer->peer = NULL;
    peer->is_ended = true;
    if (sim_unread(socket) > 0 || (socket->resets && !socket->is_unix))
        peer->error = ECONNRESET;
    if (socket->is_unix || peer->error)
        peer->has_ended = true;
    sim_epoll_notify(peer, SIM_ANY);
}

static void end(struct sim_socket *socket)
{
    struct list *node;

    while ((node = list_first(&socket->waiting))) {
        struct sim_socket *waiting = LIST_ENTRY(node, struct sim_socket, of_listener);

        waiting->resets = true;
        if (waiting->is_unix && waiting->peer)
            waiting->peer->error = ECONNRESET;
        leave_peer(waiting);
        sim_socket_free(waiting);
    }
    if (socket->state == SIM_CONNECTED)
        leave_peer(socket);
    sim_socket_free(socket);
}

int close(int fd)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket) {
        sim_socket_unname(fd);
        end(socket);
    } else {
        sim_epoll_close(fd);
    }
    return SYSTEM(close)(fd);
}

int shutdown(int fd, int how)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(shutdown)(fd, how);
    if (socket->state != SIM_CONNECTED && !socket->is_unix)
        return sim_fail(ENOTCONN);
    if (how != SHUT_RD) {
        socket->has_ended = true;
        if (socket->peer)
            socket->peer->is_ended = true;
    }
    if (how != SHUT_WR) {
        socket->is_ended = true;
        if (socket->peer && socket->is_unix)
            socket->peer->has_ended = true;
    }
    sim_epoll_notify(socket, SIM_ANY);
    if (socket->peer)
        sim_epoll_notify(socket->peer, SIM_ANY);
    return 0;
}

/* Bytes */

/* Nobody else runs meanwhile, so a call that blocks would never end. */
static ssize_t wait_in_vain(const struct sim_socket *socket, int flags)
{
    CHECK((flags & MSG_DONTWAIT) || !sim_may_block(socket));
    return sim_fail(EAGAIN);
}

static ssize_t receive(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    size_t taken = socket->taken, before = taken;

    if (socket->state != SIM_CONNECTED)
        return socket->error ? sim_take_error(socket) : sim_fail(socket->is_unix ? EINVAL : ENOTCONN);
    if (sim_unread(socket) == 0) {
        if (!socket->error && !socket->is_ended)
            return wait_in_vain(socket, flags);
        return socket->error ? sim_take_error(socket) : 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t left = socket->input_len - taken, n = parts[i].iov_len < left ? parts[i].iov_len : left;

        memcpy(parts[i].iov_base, socket->input + taken, n);
        taken += n;
    }
    if (flags & MSG_PEEK)
        return (ssize_t)(taken - before);
    socket->taken = taken;
    if (sim_unread(socket) == 0)
        socket->input_len = socket->taken = 0;
    if (socket->was_full && socket->peer && sim_has_room(socket->peer)) {
        socket->was_full = false;
        sim_epoll_notify(socket->peer, EPOLLOUT);
    }
    return (ssize_t)(taken - before);
}

static ssize_t refuse(int flags)
{
    if (!(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    return sim_fail(EPIPE);
}

static size_t put(struct sim_socket *to, struct text bytes)
{
    size_t room = to->room - sim_unread(to), n = bytes.len < room ? bytes.len : room;

    if (to->taken > 0) {
        memmove(to->input, to->input + to->taken, sim_unread(to));
        to->input_len -= to->taken;
        to->taken = 0;
    }
    if (!to->input)
        to->input = mem_alloc(to->room);
    memcpy(to->input + to->input_len, bytes.ptr, n);
    to->input_len += n;
    return n;
}

/* To a peer that is gone: TCP takes the first bytes, to which the peer's system answers with a reset. */
static ssize_t send_to_nobody(struct sim_socket *socket, size_t bytes, int flags)
{
    if (socket->is_unix || socket->has_ended)
        return refuse(flags);
    socket->error = EPIPE;
    socket->has_ended = true;
    sim_epoll_notify(socket, SIM_ANY);
    return (ssize_t)bytes;
}

static ssize_t send_parts(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    size_t bytes = 0, sent = 0;

    for (size_t i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    if (socket->state != SIM_CONNECTED)
        return socket->error ? sim_take_error(socket) : sim_fail(socket->is_unix ? ENOTCONN : EPIPE);
    if (socket->has_ended && (socket->is_unix || !socket->error))
        return refuse(flags);
    if (socket->error)
        return sim_take_error(socket);
    if (!socket->peer)
        return send_to_nobody(socket, bytes, flags);
    for (size_t i = 0; i < count; i++) {
        size_t n = put(socket->peer, (struct text){parts[i].iov_base, parts[i].iov_len});

        sent += n;
        if (n < parts[i].iov_len)
            break;
    }
    if (sent < bytes || !sim_has_room(socket))
        socket->peer->was_full = true;
    if (sent == 0 && bytes > 0)
        return wait_in_vain(socket, flags);
    sim_epoll_notify(socket->peer, EPOLLIN);
    socket->sent += sent;
    return (ssize_t)sent;
}

ssize_t recv(int fd, void *ret_bytes, size_t room, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? receive(socket, &(struct iovec){ret_bytes, room}, 1, flags)
                  : SYSTEM(recv)(fd, ret_bytes, room, flags);
}

ssize_t read(int fd, void *ret_bytes, size_t room)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? receive(socket, &(struct iovec){ret_bytes, room}, 1, 0) : SYSTEM(read)(fd, ret_bytes, room);
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? receive(socket, parts, (size_t)count, 0) : SYSTEM(readv)(fd, parts, count);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(recvmsg)(fd, message, flags);
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return receive(socket, message->msg_iov, message->msg_iovlen, flags);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? send_parts(socket, &(struct iovec){(void *)(uintptr_t)bytes, len}, 1, flags)
                  : SYSTEM(send)(fd, bytes, len, flags);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? send_parts(socket, &(struct iovec){(void *)(uintptr_t)bytes, len}, 1, 0)
                  : SYSTEM(write)(fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? send_parts(socket, parts, (size_t)count, 0) : SYSTEM(writev)(fd, parts, count);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(sendmsg)(fd, message, flags);
    CHECK(message->msg_controllen == 0);
    return send_parts(socket, message->msg_iov, message->msg_iovlen, flags);
}

/* src/http/socket.c makes two calls itself, libuv that which closes. Like the system's, it takes six arguments, however
 * many were passed. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long a[6];
    va_list values;

    va_start(values, number);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = va_arg(values, long);
    va_end(values);
    if (number == SYS_recvfrom && sim_socket_of((int)a[0]))
        return recv((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3]);
    if (number == SYS_sendto && sim_socket_of((int)a[0]))
        return send((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3]);
    if (number == SYS_close)
        return close((int)a[0]);
    return SYSTEM(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
