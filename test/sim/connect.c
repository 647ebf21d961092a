/* Listening and connecting. */
#include "base/check.h"
#include "socket_internal.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG_MAX = 4096 };

static struct list listeners = {&listeners, &listeners};

void sim_join(struct sim_socket *a, struct sim_socket *b)
{
    a->state = b->state = SIM_CONNECTED;
    a->peer = b;
    b->peer = a;
}

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
    if (socket->state == SIM_LISTENING)
        return 0;
    if (is_taken(socket))
        return sim_fail(EADDRINUSE);
    socket->state = SIM_LISTENING;
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
    struct sim_socket *accepted = sim_socket_make(-1, listener->is_unix);

    sim_join(client, accepted);
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
        return sim_fail(errno);
    listener = listener_at(address, true, &file);
    if (!listener)
        return sim_fail(ECONNREFUSED);
    if (listener->waits >= listener->backlog)
        return sim_fail(EAGAIN);
    knock(listener, socket);
    return 0;
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
    if (sim_may_block(socket))
        return socket->error ? sim_take_error(socket) : 0;
    sim_epoll_notify(socket, SIM_ANY);
    return sim_fail(EINPROGRESS);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);
    struct sockaddr_storage address = {0};

    if (!socket)
        return SYSTEM(connect)(fd, to, len);
    if (socket->state != SIM_FRESH)
        return sim_fail(EISCONN);
    memcpy(&address, to.__sockaddr__, len < sizeof address ? len : sizeof address);
    return socket->is_unix ? connect_unix(socket, &address) : connect_tcp(socket, &address);
}

int accept4(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len, int flags)
{
    struct sim_socket *listener = sim_socket_of(fd), *accepted;
    int taken;

    if (!listener)
        return SYSTEM(accept4)(fd, ret_address, ret_len, flags);
    if (listener->state != SIM_LISTENING)
        return sim_fail(EINVAL);
    if (listener->waits == 0)
        return sim_fail(EAGAIN);
    taken = SYSTEM(socket)(listener->address.ss_family, SOCK_STREAM | flags, 0);
    if (taken < 0)
        return taken;
    accepted = LIST_ENTRY(list_first(&listener->waiting), struct sim_socket, of_listener);
    list_remove(&accepted->of_listener);
    listener->waits--;
    sim_socket_name(accepted, taken);
    sim_socket_tell_address(&accepted->peer_address, accepted->is_unix, ret_address.__sockaddr__, ret_len);
    return taken;
}

int accept(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len)
{
    return sim_socket_of(fd) ? accept4(fd, ret_address, ret_len, 0) : SYSTEM(accept)(fd, ret_address, ret_len);
}
