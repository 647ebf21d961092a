/* Stream sockets. Each has a descriptor of the system, a socket that is bound and nothing else: so numbers, addresses
 * and the files of Unix sockets are free ones, and settings are refused where the system refuses them. */
#include "base/text.h"
#include "base/check.h"
#include "base/mem.h"
#include "kernel_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { FDS_MAX = 1 << 16, ROOM_BYTES = 256 * 1024, BACKLOG_MAX = 4096, ANY = 0 };

enum state {
    FRESH,
    LISTENING,
    CONNECTED, /* to a peer that may be gone */
};

struct sim_socket {
    enum state state;
    int fd;               /* -1: nobody has accepted it yet */
    bool is_unix, resets; /* resets: SO_LINGER 0 */
    struct list watches;
    /* LISTENING */
    struct list listeners, waiting;
    size_t backlog, waits;
    struct sockaddr_storage address; /* of a Unix socket: what stat() says of its file is in dev and ino */
    dev_t dev;
    ino_t ino;
    /* CONNECTED */
    struct list of_listener; /* while it waits */
    struct sim_socket *peer; /* NULL: closed */
    struct sockaddr_storage peer_address;
    uint64_t sent;
    char *input; /* what the peer has sent: from `taken` on */
    size_t input_len, taken, room;
    bool is_ended;  /* the peer sends nothing more */
    bool has_ended; /* we do not */
    bool was_full;  /* the peer waits for room */
    int error;
};

static struct sim_socket *sockets[FDS_MAX];
static struct list listeners = {&listeners, &listeners};

static int fail(int error)
{
    errno = error;
    return -1;
}

static int take_error(struct sim_socket *socket)
{
    int error = socket->error;

    socket->error = 0;
    return fail(error);
}

struct sim_socket *sim_socket_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX && sim_is_inside() ? sockets[fd] : NULL;
}

struct list *sim_socket_watches(struct sim_socket *socket)
{
    return &socket->watches;
}

static size_t unread(const struct sim_socket *socket)
{
    return socket->input_len - socket->taken;
}

/* As Linux: only a third that is free is worth a wake-up. */
static bool has_room(const struct sim_socket *socket)
{
    return !socket->peer || socket->peer->room - unread(socket->peer) >= socket->peer->room / 3;
}

uint32_t sim_socket_events(const struct sim_socket *socket)
{
    switch (socket->state) {
    case LISTENING:
        return socket->waits > 0 ? EPOLLIN : 0;
    case CONNECTED:
        return (unread(socket) > 0 || socket->is_ended || socket->error ? (uint32_t)EPOLLIN : 0) |
               (has_room(socket) || socket->error ? (uint32_t)EPOLLOUT : 0) |
               (socket->is_ended ? (uint32_t)EPOLLRDHUP : 0) |
               (socket->is_ended && socket->has_ended ? (uint32_t)EPOLLHUP : 0) |
               (socket->error ? (uint32_t)EPOLLERR : 0);
    case FRESH:
    default:
        return EPOLLOUT | EPOLLHUP | (socket->is_ended ? (uint32_t)(EPOLLIN | EPOLLRDHUP) : 0) |
               (socket->error ? (uint32_t)EPOLLERR : 0);
    }
}

static struct sim_socket *make(int fd, bool is_unix)
{
    struct sim_socket *socket = mem_alloc(sizeof *socket);

    *socket = (struct sim_socket){.state = FRESH, .fd = fd, .is_unix = is_unix, .room = ROOM_BYTES};
    list_init(&socket->watches);
    list_init(&socket->listeners);
    list_init(&socket->waiting);
    list_init(&socket->of_listener);
    if (fd >= 0) {
        CHECK(fd < FDS_MAX && !sockets[fd]);
        sockets[fd] = socket;
    }
    return socket;
}

int socket(int domain, int type, int protocol)
{
    int fd = SYSTEM(socket)(domain, type, protocol);

    if (fd >= 0 && sim_is_inside() && (type & 0xf) == SOCK_STREAM &&
        (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX))
        make(fd, domain == AF_UNIX);
    return fd;
}

static void join(struct sim_socket *a, struct sim_socket *b)
{
    a->state = b->state = CONNECTED;
    a->peer = b;
    b->peer = a;
}

int socketpair(int domain, int type, int protocol, int ret_fds[2])
{
    int status = SYSTEM(socketpair)(domain, type, protocol, ret_fds);

    if (status == 0 && sim_is_inside() && domain == AF_UNIX && (type & 0xf) == SOCK_STREAM)
        join(make(ret_fds[0], true), make(ret_fds[1], true));
    return status;
}

/* Listening and connecting */

static uint16_t port_of(const struct sockaddr_storage *address)
{
    return ((const struct sockaddr_in *)address)->sin_port; /* where IPv6 has it, too */
}

static bool is_any(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
                              &((const struct sockaddr_in6 *)b)->sin6_addr);
}

static void note_address(struct sim_socket *socket)
{
    socklen_t len = sizeof socket->address;
    struct stat file;

    CHECK(SYSTEM(getsockname)(socket->fd, (struct sockaddr *)&socket->address, &len) == 0);
    if (!socket->is_unix || ((struct sockaddr_un *)&socket->address)->sun_path[0] == '\0' ||
        stat(((struct sockaddr_un *)&socket->address)->sun_path, &file) != 0)
        return;
    socket->dev = file.st_dev;
    socket->ino = file.st_ino;
}

static bool is_taken(const struct sim_socket *socket)
{
    for (struct list *node = listeners.next; node != &listeners; node = node->next) {
        const struct sim_socket *other = LIST_ENTRY(node, struct sim_socket, listeners);

        if (!socket->is_unix && !other->is_unix && port_of(&other->address) == port_of(&socket->address) &&
            (is_any(&other->address) || is_any(&socket->address) || is_same_host(&other->address, &socket->address)))
            return true;
    }
    return false;
}

int listen(int fd, int backlog)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(listen)(fd, backlog);
    note_address(socket);
    if (socket->state == LISTENING)
        return 0;
    if (is_taken(socket))
        return fail(EADDRINUSE);
    socket->state = LISTENING;
    socket->backlog = backlog < BACKLOG_MAX ? (size_t)backlog + 1 : BACKLOG_MAX;
    list_append(&listeners, &socket->listeners);
    return 0;
}

static struct sim_socket *listener_at(const struct sockaddr_storage *address, bool is_unix, const struct stat *file)
{
    for (struct list *node = listeners.next; node != &listeners; node = node->next) {
        struct sim_socket *l = LIST_ENTRY(node, struct sim_socket, listeners);

        if (l->is_unix != is_unix)
            continue;
        if (is_unix ? l->dev == file->st_dev && l->ino == file->st_ino
                    : port_of(&l->address) == port_of(address) &&
                          (is_any(&l->address) || is_same_host(&l->address, address)))
            return l;
    }
    return NULL;
}

static void give_local_address(struct sim_socket *socket, const struct sockaddr_storage *to)
{
    struct sockaddr_storage local = {.ss_family = to->ss_family};
    socklen_t len = sizeof local;

    if (SYSTEM(getsockname)(socket->fd, (struct sockaddr *)&local, &len) == 0 && port_of(&local) != 0)
        return;
    local = *to;
    ((struct sockaddr_in *)&local)->sin_port = 0;
    CHECK(SYSTEM(bind)(socket->fd, (struct sockaddr *)&local,
                       to->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) == 0);
}

static struct sim_socket *knock(struct sim_socket *listener, struct sim_socket *client)
{
    struct sim_socket *accepted = make(-1, listener->is_unix);

    join(client, accepted);
    client->peer_address = accepted->address = listener->address;
    accepted->resets = false;
    if (!client->is_unix)
        note_address(client);
    accepted->peer_address = client->address;
    accepted->peer_address.ss_family = listener->address.ss_family;
    list_append(&listener->waiting, &accepted->of_listener);
    listener->waits++;
    sim_epoll_notify(listener, EPOLLIN);
    return accepted;
}

static int connect_unix(struct sim_socket *socket, const struct sockaddr_storage *address)
{
    struct stat file;
    struct sim_socket *listener;

    if (stat(((const struct sockaddr_un *)address)->sun_path, &file) != 0)
        return fail(errno);
    listener = listener_at(address, true, &file);
    if (!listener)
        return fail(ECONNREFUSED);
    if (listener->waits >= listener->backlog)
        return fail(EAGAIN);
    knock(listener, socket);
    return 0;
}

static bool may_block(const struct sim_socket *socket)
{
    return !(fcntl(socket->fd, F_GETFL) & O_NONBLOCK);
}

/* Over TCP the answer comes later, even if it is there at once. */
static int connect_tcp(struct sim_socket *socket, const struct sockaddr_storage *address)
{
    struct sim_socket *listener = listener_at(address, false, NULL);

    give_local_address(socket, address);
    if (listener && listener->waits < listener->backlog)
        knock(listener, socket);
    else
        socket->error = ECONNREFUSED;
    if (may_block(socket))
        return socket->error ? take_error(socket) : 0;
    sim_epoll_notify(socket, ANY);
    return fail(EINPROGRESS);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);
    struct sockaddr_storage address = {0};

    if (!socket)
        return SYSTEM(connect)(fd, to, len);
    if (socket->state != FRESH)
        return fail(EISCONN);
    memcpy(&address, to.__sockaddr__, len < sizeof address ? len : sizeof address);
    return socket->is_unix ? connect_unix(socket, &address) : connect_tcp(socket, &address);
}

static void tell_address(const struct sockaddr_storage *address, bool is_unix, struct sockaddr *ret_address,
                         socklen_t *ret_len)
{
    socklen_t len = is_unix                          ? sizeof(sa_family_t)
                    : address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                     : sizeof(struct sockaddr_in);

    if (!ret_address)
        return;
    memcpy(ret_address, address, *ret_len < len ? *ret_len : len);
    *ret_len = len;
}

int accept4(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len, int flags)
{
    struct sim_socket *listener = sim_socket_of(fd), *accepted;
    int taken;

    if (!listener)
        return SYSTEM(accept4)(fd, ret_address, ret_len, flags);
    if (listener->state != LISTENING)
        return fail(EINVAL);
    if (listener->waits == 0)
        return fail(EAGAIN);
    taken = SYSTEM(socket)(listener->address.ss_family, SOCK_STREAM | flags, 0);
    if (taken < 0)
        return taken;
    accepted = LIST_ENTRY(list_first(&listener->waiting), struct sim_socket, of_listener);
    list_remove(&accepted->of_listener);
    listener->waits--;
    CHECK(taken < FDS_MAX && !sockets[taken]);
    sockets[taken] = accepted;
    accepted->fd = taken;
    tell_address(&accepted->peer_address, accepted->is_unix, ret_address.__sockaddr__, ret_len);
    return taken;
}

int accept(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    return sim_socket_of(fd) ? accept4(fd, ret_address, ret_len, 0) : SYSTEM(accept)(fd, ret_address, ret_len);
}

int getsockname(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    const struct sim_socket *socket = sim_socket_of(fd);

    if (!socket || socket->state != CONNECTED || socket->address.ss_family == 0)
        return SYSTEM(getsockname)(fd, ret_address, ret_len);
    tell_address(&socket->address, socket->is_unix, ret_address.__sockaddr__, ret_len);
    return 0;
}

int getpeername(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    const struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(getpeername)(fd, ret_address, ret_len);
    if (socket->state != CONNECTED || (!socket->peer && !socket->is_unix))
        return fail(ENOTCONN);
    tell_address(&socket->peer_address, socket->is_unix, ret_address.__sockaddr__, ret_len);
    return 0;
}

/* The peer's system acknowledges at once. The C library's struct ends before that count. */
static int tell_tcp_info(const struct sim_socket *socket, void *ret_info, socklen_t *ret_len)
{
    enum { ACKNOWLEDGED_AT = 120, INFO_BYTES = 232 };
    char info[INFO_BYTES] = "";

    memcpy(info + ACKNOWLEDGED_AT, &socket->sent, sizeof socket->sent);
    *ret_len = *ret_len < sizeof info ? *ret_len : sizeof info;
    memcpy(ret_info, info, *ret_len);
    return 0;
}

int getsockopt(int fd, int level, int name, void *restrict ret_value, socklen_t *restrict ret_len)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket && level == SOL_SOCKET && name == SO_ERROR) {
        *(int *)ret_value = socket->error;
        socket->error = 0;
        return 0;
    }
    if (socket && level == SOL_SOCKET && name == SO_PEERCRED) {
        *(struct ucred *)ret_value = (struct ucred){.pid = getpid(), .uid = getuid(), .gid = getgid()};
        return 0;
    }
    if (socket && !socket->is_unix && level == IPPROTO_TCP && name == TCP_INFO)
        return tell_tcp_info(socket, ret_value, ret_len);
    return SYSTEM(getsockopt)(fd, level, name, ret_value, ret_len);
}

int ioctl(int fd, unsigned long request, ...)
{
    struct sim_socket *socket = sim_socket_of(fd);
    va_list values;
    void *argument;

    va_start(values, request);
    argument = va_arg(values, void *);
    va_end(values);
    if (!socket || request != SIOCOUTQ)
        return SYSTEM(ioctl)(fd, request, argument);
    *(int *)argument = socket->is_unix && socket->peer ? (int)unread(socket->peer) : 0;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket && level == SOL_SOCKET && name == SO_LINGER)
        socket->resets = ((const struct linger *)value)->l_onoff && ((const struct linger *)value)->l_linger == 0;
    if (socket && level == SOL_SOCKET && name == SO_RCVBUF && !socket->input)
        socket->room = (size_t)(*(const int *)value) * 2; /* as Linux doubles it */
    return SYSTEM(setsockopt)(fd, level, name, value, len);
}

/* Ending */

static void free_socket(struct sim_socket *socket)
{
    sim_epoll_forget(socket);
    list_remove(&socket->listeners);
    list_remove(&socket->of_listener);
    free(socket->input);
    free(socket);
}

/* The peer reads what it has, then that it was reset. */
static void leave_peer(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;

    if (!peer)
        return;
    peer->peer = NULL;
    peer->is_ended = true;
    if (unread(socket) > 0 || (socket->resets && !socket->is_unix))
        peer->error = ECONNRESET;
    if (socket->is_unix || peer->error)
        peer->has_ended = true;
    sim_epoll_notify(peer, ANY);
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
        free_socket(waiting);
    }
    if (socket->state == CONNECTED)
        leave_peer(socket);
    free_socket(socket);
}

int close(int fd)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket) {
        sockets[fd] = NULL;
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
    if (socket->state != CONNECTED && !socket->is_unix)
        return fail(ENOTCONN);
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
    sim_epoll_notify(socket, ANY);
    if (socket->peer)
        sim_epoll_notify(socket->peer, ANY);
    return 0;
}

/* Bytes */

/* Nobody else runs meanwhile, so a call that blocks would never end. */
static ssize_t wait_in_vain(const struct sim_socket *socket, int flags)
{
    CHECK((flags & MSG_DONTWAIT) || !may_block(socket));
    return fail(EAGAIN);
}

static ssize_t receive(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    size_t taken = socket->taken, before = taken;

    if (socket->state != CONNECTED)
        return socket->error ? take_error(socket) : fail(socket->is_unix ? EINVAL : ENOTCONN);
    if (unread(socket) == 0) {
        if (!socket->error && !socket->is_ended)
            return wait_in_vain(socket, flags);
        return socket->error ? take_error(socket) : 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t left = socket->input_len - taken, n = parts[i].iov_len < left ? parts[i].iov_len : left;

        memcpy(parts[i].iov_base, socket->input + taken, n);
        taken += n;
    }
    if (flags & MSG_PEEK)
        return (ssize_t)(taken - before);
    socket->taken = taken;
    if (unread(socket) == 0)
        socket->input_len = socket->taken = 0;
    if (socket->was_full && socket->peer && has_room(socket->peer)) {
        socket->was_full = false;
        sim_epoll_notify(socket->peer, EPOLLOUT);
    }
    return (ssize_t)(taken - before);
}

static ssize_t refuse(int flags)
{
    if (!(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    return fail(EPIPE);
}

static size_t put(struct sim_socket *to, struct text bytes)
{
    size_t room = to->room - unread(to), n = bytes.len < room ? bytes.len : room;

    if (to->taken > 0) {
        memmove(to->input, to->input + to->taken, unread(to));
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
    sim_epoll_notify(socket, ANY);
    return (ssize_t)bytes;
}

static ssize_t send_parts(struct sim_socket *socket, const struct iovec *parts, size_t count, int flags)
{
    size_t bytes = 0, sent = 0;

    for (size_t i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    if (socket->state != CONNECTED)
        return socket->error ? take_error(socket) : fail(socket->is_unix ? ENOTCONN : EPIPE);
    if (socket->has_ended && (socket->is_unix || !socket->error))
        return refuse(flags);
    if (socket->error)
        return take_error(socket);
    if (!socket->peer)
        return send_to_nobody(socket, bytes, flags);
    for (size_t i = 0; i < count; i++) {
        size_t n = put(socket->peer, (struct text){parts[i].iov_base, parts[i].iov_len});

        sent += n;
        if (n < parts[i].iov_len)
            break;
    }
    if (sent < bytes || !has_room(socket))
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
