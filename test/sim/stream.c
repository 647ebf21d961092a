/* Bytes, and the end of sockets. */
#include "base/check.h"
#include "base/mem.h"
#include "socket_internal.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FIRST_ROOM = 1024 };

/* Ending */

static const struct text NOTHING = {NULL, 0};

/* The peer reads what it has, then that it was reset: nobody says so twice, so that is lost if nothing can arrive. But
 * what the peer has sent is answered by a reset as often as it sends it again. */
static void leave_peer(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;
    const bool is_reset = sim_unread(socket) > 0 || (socket->resets && !socket->is_unix);

    if (!peer)
        return;
    peer->peer = NULL;
    if (!socket->host) {
        sim_word_arrived(peer, is_reset ? SIM_RESET : SIM_END, NOTHING);
        return;
    }
    if (is_reset ? !sim_is_cut(socket->host, peer->host) : !socket->has_ended)
        sim_convey(peer, socket->host, is_reset ? SIM_RESET : SIM_END, NOTHING);
    if (socket->flying_bytes > 0)
        sim_send_to_nobody(peer, sim_flying_since(socket));
}

void sim_socket_end(struct sim_socket *socket)
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
    leave_peer(socket);
    sim_socket_free(socket);
}

int close(int fd)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket) {
        sim_socket_unname(fd);
        sim_socket_end(socket);
    } else {
        sim_epoll_close(fd);
    }
    if (sim_world)
        sim_world->closed(fd);
    return SYSTEM(close)(fd);
}

int shutdown(int fd, int how)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(shutdown)(fd, how);
    if (socket->state != SIM_CONNECTED && !socket->is_unix)
        return sim_fail(ENOTCONN);
    if (how != SHUT_RD)
        socket->has_ended = true;
    if (how != SHUT_WR) {
        socket->is_ended = true;
        if (socket->peer && socket->is_unix)
            socket->peer->has_ended = true;
    }
    sim_epoll_notify(socket, SIM_ANY);
    if (socket->peer && how != SHUT_RD)
        sim_convey(socket->peer, socket->host, SIM_END, NOTHING);
    else if (socket->peer && !socket->host)
        sim_epoll_notify(socket->peer, SIM_ANY);
    return 0;
}

/* Bytes */

/* False: the call does not block. Without others that run meanwhile it would never end. */
static bool wait_a_while(const struct sim_socket *socket, int flags)
{
    if ((flags & MSG_DONTWAIT) || !sim_may_block(socket))
        return false;
    sim_let_others();
    return true;
}

void sim_tell_room(struct sim_socket *socket)
{
    if (!socket->was_full || !socket->peer || !sim_has_room(socket->peer))
        return;
    socket->was_full = false;
    sim_convey(socket->peer, socket->host, SIM_ROOM, NOTHING);
}

static ssize_t receive(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    size_t taken, before;

    if (socket->state != SIM_CONNECTED)
        return socket->error ? sim_take_error(socket) : sim_fail(socket->is_unix ? EINVAL : ENOTCONN);
    while (sim_unread(socket) == 0) {
        if (socket->error || socket->is_ended)
            return socket->error ? sim_take_error(socket) : 0;
        if (!wait_a_while(socket, flags))
            return sim_fail(EAGAIN);
    }
    taken = before = socket->taken;
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
    sim_tell_room(socket);
    return (ssize_t)(taken - before);
}

static ssize_t refuse(int flags)
{
    if (!(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    return sim_fail(EPIPE);
}

static void put(struct sim_socket *to, struct text bytes)
{
    if (to->taken > 0) {
        memmove(to->input, to->input + to->taken, sim_unread(to));
        to->input_len -= to->taken;
        to->taken = 0;
    }
    while (to->input_room < to->input_len + bytes.len) {
        to->input_room = to->input_room > 0 ? 2 * to->input_room : FIRST_ROOM;
        to->input = mem_resize(to->input, to->input_room);
    }
    memcpy(to->input + to->input_len, bytes.ptr, bytes.len);
    to->input_len += bytes.len;
}

static void note_end(struct sim_socket *to, bool is_reset)
{
    to->is_ended = true;
    if (is_reset)
        to->error = to->state == SIM_CONNECTING ? ECONNREFUSED : ECONNRESET;
    if (to->state == SIM_CONNECTING)
        to->state = SIM_FRESH;
    if ((!to->peer && (to->is_unix || to->error)) || is_reset)
        to->has_ended = true;
    if (is_reset)
        sim_drop_flying(to);
}

static void acknowledge(struct sim_socket *sender, size_t bytes)
{
    sender->acknowledged += bytes;
    if (sender->host)
        sim_patience_heard(sender);
}

static void note_bytes(struct sim_socket *to, struct text bytes)
{
    if (to->peer)
        acknowledge(to->peer, bytes.len);
    if (!to->actor || sim_actor_waits(to))
        put(to, bytes);
    else
        sim_tell_room(to);
}

/* What may be ready now. */
static uint32_t note(struct sim_socket *to, enum sim_word word, struct text bytes)
{
    switch (word) {
    case SIM_WELCOME:
        to->state = SIM_CONNECTED;
        return SIM_ANY;
    case SIM_REFUSAL:
        to->state = SIM_FRESH;
        to->error = ECONNREFUSED;
        return SIM_ANY;
    case SIM_BYTES:
        note_bytes(to, bytes);
        return EPOLLIN;
    case SIM_ROOM:
        return EPOLLOUT;
    case SIM_KNOCK:
    case SIM_ASK:
    case SIM_END:
    case SIM_RESET:
    default:
        note_end(to, word == SIM_RESET);
        return SIM_ANY;
    }
}

void sim_word_arrived(struct sim_socket *to, enum sim_word word, struct text bytes)
{
    uint32_t events;

    if (word == SIM_KNOCK) {
        sim_knock_arrived(to);
        return;
    }
    if (word == SIM_ASK) {
        sim_convey(to, to->peer_host, SIM_RESET, NOTHING);
        return;
    }
    if (to->host)
        sim_patience_heard(to);
    events = note(to, word, bytes);
    if (to->host && word == SIM_WELCOME)
        sim_patience_begin(to);
    if (to->actor)
        sim_tell_actor(to, word, bytes);
    else
        sim_epoll_notify(to, events);
}

void sim_send_to_nobody(struct sim_socket *socket, uint64_t first_ns)
{
    enum sim_word last;

    if (sim_last_flying(socket, &last) && (last == SIM_ASK || last == SIM_RESET))
        return;
    socket->patience.asked_ns = first_ns;
    sim_convey(socket, socket->host, SIM_ASK, NOTHING);
    sim_patience_sent(socket);
}

/* To a peer that is gone: TCP takes the first bytes, to which the peer's system answers with a reset. */
static ssize_t send_to_nobody(struct sim_socket *socket, size_t bytes, int flags)
{
    if (socket->is_unix || socket->has_ended)
        return refuse(flags);
    if (socket->host) {
        sim_send_to_nobody(socket, sim_now_ns());
        return (ssize_t)bytes;
    }
    socket->error = EPIPE;
    socket->has_ended = true;
    sim_epoll_notify(socket, SIM_ANY);
    return (ssize_t)bytes;
}

size_t sim_send(struct sim_socket *socket, struct text bytes)
{
    const size_t room = sim_room(socket->peer);

    if (bytes.len > room)
        bytes.len = room;
    if (bytes.len > 0)
        sim_convey(socket->peer, socket->host, SIM_BYTES, bytes);
    if (bytes.len > 0 && socket->host)
        sim_patience_sent(socket);
    return bytes.len;
}

static ssize_t send_some(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
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
        size_t n = sim_send(socket, (struct text){parts[i].iov_base, parts[i].iov_len});

        sent += n;
        if (n < parts[i].iov_len || !socket->peer) /* an actor may have closed it */
            break;
    }
    if (socket->peer && (sent < bytes || !sim_has_room(socket)))
        socket->peer->was_full = true;
    return sent == 0 && bytes > 0 ? sim_fail(EAGAIN) : (ssize_t)sent;
}

static ssize_t send_parts(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    ssize_t sent;

    do
        sent = send_some(socket, parts, count, flags);
    while (sent < 0 && errno == EAGAIN && wait_a_while(socket, flags));
    return sent;
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
    ssize_t taken;

    if (!socket)
        return SYSTEM(recvmsg)(fd, message, flags);
    message->msg_flags = 0;
    taken = receive(socket, message->msg_iov, message->msg_iovlen, flags);
    if (taken > 0 && !(flags & MSG_PEEK))
        sim_rights_taken(socket, message);
    else
        message->msg_controllen = 0;
    return taken;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);

    return socket ? send_parts(socket, &(struct iovec){(void *)(uintptr_t)bytes, len}, 1, flags)
                  : SYSTEM(send)(fd, bytes, len, flags);
}

static bool is_printed(int fd, const struct iovec *parts, size_t count)
{
    return sim_world && fd <= STDERR_FILENO && sim_world->printed(fd, parts, count);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (is_printed(fd, &(struct iovec){(void *)(uintptr_t)bytes, len}, 1))
        return (ssize_t)len;
    return socket ? send_parts(socket, &(struct iovec){(void *)(uintptr_t)bytes, len}, 1, 0)
                  : SYSTEM(write)(fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    struct sim_socket *socket = sim_socket_of(fd);
    ssize_t bytes = 0;

    if (is_printed(fd, parts, (size_t)count)) {
        for (int i = 0; i < count; i++)
            bytes += (ssize_t)parts[i].iov_len;
        return bytes;
    }
    return socket ? send_parts(socket, parts, (size_t)count, 0) : SYSTEM(writev)(fd, parts, count);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct sim_socket *socket = sim_socket_of(fd);
    ssize_t sent;

    if (!socket)
        return SYSTEM(sendmsg)(fd, message, flags);
    sent = send_parts(socket, message->msg_iov, message->msg_iovlen, flags);
    if (sent > 0)
        sim_rights_sent(socket->peer, message);
    return sent;
}

/* src/http/socket.c makes two calls itself, libuv that which closes. Like the system's, it takes six arguments, however
 * many were passed. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long a[6];
    va_list values;

    va_start(values, number);
    a[0] = va_arg(values, long);
    a[1] = va_arg(values, long);
    a[2] = va_arg(values, long);
    a[3] = va_arg(values, long);
    a[4] = va_arg(values, long);
    a[5] = va_arg(values, long);
    va_end(values);
    if (number == SYS_recvfrom && sim_socket_of((int)a[0]))
        return recv((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3]);
    if (number == SYS_sendto && sim_socket_of((int)a[0]))
        return send((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3]);
    if (number == SYS_close)
        return close((int)a[0]);
    return SYSTEM(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
