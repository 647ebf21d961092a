/* Stream sockets: descriptors, names and options. Each that has a descriptor has one of the system, a socket that is
 * bound and nothing else: so numbers are free ones, and without hosts addresses and the files of Unix sockets, too; and
 * settings are refused where the system refuses them. */
#include "socket_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROOM_BYTES = 256 * 1024 };

static struct sim_socket *sockets[SIM_FDS_MAX];

int sim_fail(int error)
{
    errno = error;
    return -1;
}

int sim_take_error(struct sim_socket *socket)
{
    int error = socket->error;

    socket->error = 0;
    return sim_fail(error);
}

struct sim_socket *sim_socket_of(int fd)
{
    return fd >= 0 && fd < SIM_FDS_MAX && sim_is_inside() ? sockets[fd] : NULL;
}

struct list *sim_socket_watches(struct sim_socket *socket)
{
    return &socket->watches;
}

size_t sim_unread(const struct sim_socket *socket)
{
    return socket->input_len - socket->taken;
}

size_t sim_room(const struct sim_socket *socket)
{
    const size_t taken = sim_unread(socket) + socket->flying_bytes;

    return socket->room > taken ? socket->room - taken : 0;
}

bool sim_has_room(const struct sim_socket *socket)
{
    return !socket->peer || sim_room(socket->peer) >= socket->peer->room / 3;
}

uint32_t sim_socket_events(const struct sim_socket *socket)
{
    switch (socket->state) {
    case SIM_LISTENING:
        return socket->waits > 0 ? EPOLLIN : 0;
    case SIM_CONNECTING:
        return 0;
    case SIM_CONNECTED:
        return (sim_unread(socket) > 0 || socket->is_ended || socket->error ? (uint32_t)EPOLLIN : 0) |
               (sim_has_room(socket) || socket->error ? (uint32_t)EPOLLOUT : 0) |
               (socket->is_ended ? (uint32_t)EPOLLRDHUP : 0) |
               (socket->is_ended && socket->has_ended ? (uint32_t)EPOLLHUP : 0) |
               (socket->error ? (uint32_t)EPOLLERR : 0);
    case SIM_FRESH:
    default:
        return EPOLLOUT | EPOLLHUP | (socket->is_ended ? (uint32_t)(EPOLLIN | EPOLLRDHUP) : 0) |
               (socket->error ? (uint32_t)EPOLLERR : 0);
    }
}

void sim_socket_name(struct sim_socket *socket, int fd)
{
    CHECK(fd < SIM_FDS_MAX && !sockets[fd]);
    sockets[fd] = socket;
    socket->fd = fd;
    if (sim_world)
        sim_world->opened(fd);
}

void sim_socket_unname(int fd)
{
    sockets[fd]->fd = -1;
    sockets[fd] = NULL;
}

struct sim_socket *sim_socket_make(int fd, bool is_unix, struct sim_host *host)
{
    struct sim_socket *socket = mem_alloc(sizeof *socket);

    *socket = (struct sim_socket){
        .state = SIM_FRESH, .fd = -1, .is_unix = is_unix, .room = ROOM_BYTES, .host = is_unix ? NULL : host};
    list_init(&socket->watches);
    list_init(&socket->listeners);
    list_init(&socket->waiting);
    list_init(&socket->of_listener);
    list_init(&socket->of_host);
    list_init(&socket->flying);
    sim_patience_init(&socket->patience);
    if (socket->host)
        list_append(&socket->host->sockets, &socket->of_host);
    if (fd >= 0)
        sim_socket_name(socket, fd);
    return socket;
}

void sim_socket_free(struct sim_socket *socket)
{
    sim_epoll_forget(socket);
    sim_drop_flying(socket);
    sim_rights_drop(socket);
    sim_event_cancel(&socket->resumes);
    sim_event_cancel(&socket->patience.looks);
    list_remove(&socket->listeners);
    list_remove(&socket->of_listener);
    list_remove(&socket->of_host);
    free(socket->input);
    free(socket);
}

static struct sim_host *host_of_caller(void)
{
    return sim_world ? sim_world->host() : NULL;
}

int socket(int domain, int type, int protocol)
{
    int fd = SYSTEM(socket)(domain, type, protocol);

    if (fd >= 0 && sim_is_inside() && (type & 0xf) == SOCK_STREAM &&
        (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX))
        sim_socket_make(fd, domain == AF_UNIX, host_of_caller());
    return fd;
}

int socketpair(int domain, int type, int protocol, int ret_fds[2])
{
    int status = SYSTEM(socketpair)(domain, type, protocol, ret_fds);

    if (status == 0 && sim_is_inside() && domain == AF_UNIX && (type & 0xf) == SOCK_STREAM)
        sim_join(sim_socket_make(ret_fds[0], true, NULL), sim_socket_make(ret_fds[1], true, NULL));
    return status;
}

/* Of a process among several, pipes are ours, too: whoever waits for one is woken. */
int pipe2(int ret_fds[2], int flags)
{
    int status = SYSTEM(pipe2)(ret_fds, flags);

    if (status == 0 && sim_has_others())
        sim_join(sim_socket_make(ret_fds[0], true, NULL), sim_socket_make(ret_fds[1], true, NULL));
    return status;
}

/* And counters: one is a socket that is its own peer. Nobody asks what they have counted. */
int eventfd(unsigned count, int flags)
{
    int fd = SYSTEM(eventfd)(count, flags);
    struct sim_socket *socket;

    if (fd >= 0 && sim_has_others()) {
        CHECK(count == 0);
        socket = sim_socket_make(fd, true, NULL);
        sim_join(socket, socket);
    }
    return fd;
}

bool sim_may_block(const struct sim_socket *socket)
{
    return !(fcntl(socket->fd, F_GETFL) & O_NONBLOCK);
}

void sim_socket_tell_address(const struct sockaddr_storage *address, bool is_unix, struct sockaddr *ret_address,
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

int getsockname(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    const struct sim_socket *socket = sim_socket_of(fd);

    if (!socket || (!socket->host && (socket->state != SIM_CONNECTED || socket->address.ss_family == 0)))
        return SYSTEM(getsockname)(fd, ret_address, ret_len);
    sim_socket_tell_address(&socket->address, socket->is_unix, ret_address.__sockaddr__, ret_len);
    return 0;
}

int getpeername(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    const struct sim_socket *socket = sim_socket_of(fd);

    if (!socket)
        return SYSTEM(getpeername)(fd, ret_address, ret_len);
    if (socket->state != SIM_CONNECTED || (!socket->peer && !socket->is_unix && !socket->host))
        return sim_fail(ENOTCONN);
    sim_socket_tell_address(&socket->peer_address, socket->is_unix, ret_address.__sockaddr__, ret_len);
    return 0;
}

/* The peer's system acknowledges what arrives. The C library's struct ends before that count. */
static int tell_tcp_info(const struct sim_socket *socket, void *ret_info, socklen_t *ret_len)
{
    enum { ACKNOWLEDGED_AT = 120, INFO_BYTES = 232 };
    char info[INFO_BYTES] = "";

    memcpy(info + ACKNOWLEDGED_AT, &socket->acknowledged, sizeof socket->acknowledged);
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
    *(int *)argument = !socket->peer     ? 0
                       : socket->is_unix ? (int)sim_unread(socket->peer)
                                         : (int)socket->peer->flying_bytes;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);

    if (socket && level == SOL_SOCKET && name == SO_LINGER)
        socket->resets = ((const struct linger *)value)->l_onoff && ((const struct linger *)value)->l_linger == 0;
    if (socket && level == SOL_SOCKET && name == SO_RCVBUF && !socket->input)
        socket->room = (size_t)(*(const int *)value) * 2; /* as Linux doubles it */
    if (socket && socket->host && len == sizeof(int))
        sim_patience_set(socket, level, name, *(const int *)value);
    return SYSTEM(setsockopt)(fd, level, name, value, len);
}
