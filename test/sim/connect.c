/* Listening and connecting. */
#include "socket_internal.h"
#include "base/check.h"
#include "actor.h"
#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG_MAX = 4096, FIRST_PORT = 32768, LAST_PORT = 60999 };

static struct list listeners = {&listeners, &listeners};

void sim_join(struct sim_socket *a, struct sim_socket *b)
{
    a->state = b->state = SIM_CONNECTED;
    a->peer = b;
    b->peer = a;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in head; /* where IPv6 has it, too */

    memcpy(&head, address, sizeof head);
    return head.sin_port;
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

static bool is_of_host(const struct sockaddr_storage *address, const struct sim_host *host)
{
    return is_any(address) || ((const struct sockaddr_in *)address)->sin_addr.s_addr == host->ip.s_addr ||
           ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static uint16_t draw_port(struct sim_host *host)
{
    const uint16_t port = host->next_port;

    host->next_port = port == LAST_PORT ? FIRST_PORT : (uint16_t)(port + 1);
    return htons(port);
}

/* Where the system would have bound it. */
static void give_host_address(struct sim_socket *socket, struct in_addr ip)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&socket->address;

    if (socket->address.ss_family == 0)
        *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = ip};
    if (address->sin_port == 0)
        address->sin_port = draw_port(socket->host);
}

static void note_address(struct sim_socket *socket)
{
    socklen_t len = sizeof socket->address;
    struct stat file;

    if (socket->host) {
        give_host_address(socket, socket->host->ip);
        return;
    }
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

        if (!socket->is_unix && !other->is_unix && other->host == socket->host &&
            port_of(&other->address) == port_of(&socket->address) &&
            (is_any(&other->address) || is_any(&socket->address) || is_same_host(&other->address, &socket->address)))
            return true;
    }
    return false;
}

int bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);
    const struct sockaddr_storage *address = (const struct sockaddr_storage *)to.__sockaddr__;

    if (!socket || !socket->host)
        return SYSTEM(bind)(fd, to, len);
    if (socket->address.ss_family != 0)
        return sim_fail(EINVAL);
    if (address->ss_family != AF_INET || !is_of_host(address, socket->host))
        return sim_fail(EADDRNOTAVAIL);
    memcpy(&socket->address, address, sizeof(struct sockaddr_in));
    if (port_of(address) != 0 && is_taken(socket)) {
        socket->address.ss_family = 0;
        return sim_fail(EADDRINUSE);
    }
    give_host_address(socket, socket->host->ip);
    return 0;
}

void sim_begin_to_listen(struct sim_socket *socket, size_t backlog)
{
    CHECK(!is_taken(socket));
    socket->state = SIM_LISTENING;
    socket->backlog = backlog < BACKLOG_MAX ? backlog + 1 : BACKLOG_MAX;
    list_append(&listeners, &socket->listeners);
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
    sim_begin_to_listen(socket, (size_t)backlog);
    return 0;
}

/* file: of a Unix socket; else of this host, or NULL. */
static struct sim_socket *listener_at(const struct sockaddr_storage *address, const struct stat *file,
                                      const struct sim_host *host)
{
    for (struct list *node = listeners.next; node != &listeners; node = node->next) {
        struct sim_socket *l = LIST_ENTRY(node, struct sim_socket, listeners);

        if (l->is_unix != (file != NULL) || l->host != host)
            continue;
        if (file ? l->dev == file->st_dev && l->ino == file->st_ino
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

static void wait_for_accept(struct sim_socket *listener, struct sim_socket *accepted)
{
    if (listener->actor) {
        accepted->actor = listener->actor;
        accepted->actor_arg = listener->actor_arg;
        listener->actor->connected(accepted, listener->actor_arg);
        return;
    }
    list_append(&listener->waiting, &accepted->of_listener);
    listener->waits++;
    sim_epoll_notify(listener, EPOLLIN);
}

static void knock(struct sim_socket *listener, struct sim_socket *client, const struct sockaddr_storage *address)
{
    struct sim_socket *accepted = sim_socket_make(-1, listener->is_unix, listener->host);

    sim_join(client, accepted);
    client->peer_address = accepted->address = *address;
    accepted->resets = false;
    if (!client->is_unix)
        note_address(client);
    accepted->peer_host = client->host;
    accepted->peer_address = client->address;
    accepted->peer_address.ss_family = listener->address.ss_family;
    if (client->host) {
        client->state = SIM_CONNECTING;
        sim_convey(client, listener->host, SIM_WELCOME, (struct text){NULL, 0});
    }
    wait_for_accept(listener, accepted);
}

static int connect_unix(struct sim_socket *socket, const struct sockaddr_storage *address)
{
    struct stat file;
    struct sim_socket *listener;

    if (stat(((const struct sockaddr_un *)address)->sun_path, &file) != 0)
        return sim_fail(errno);
    listener = listener_at(address, &file, NULL);
    if (!listener)
        return sim_fail(ECONNREFUSED);
    if (listener->waits >= listener->backlog)
        return sim_fail(EAGAIN);
    knock(listener, socket, &listener->address);
    return 0;
}

/* Over TCP the answer comes later, even if it is there at once. */
static int connect_tcp(struct sim_socket *socket, const struct sockaddr_storage *address)
{
    struct sim_socket *listener = listener_at(address, NULL, NULL);

    give_local_address(socket, address);
    if (listener && listener->waits < listener->backlog)
        knock(listener, socket, &listener->address);
    else
        socket->error = ECONNREFUSED;
    if (sim_may_block(socket))
        return socket->error ? sim_take_error(socket) : 0;
    sim_epoll_notify(socket, SIM_ANY);
    return sim_fail(EINPROGRESS);
}

/* Nobody answers at an address that no host has. */
void sim_begin_to_connect(struct sim_socket *socket, const struct sockaddr_storage *address)
{
    const struct in_addr ip = ((const struct sockaddr_in *)address)->sin_addr;

    socket->state = SIM_CONNECTING;
    socket->peer_address = *address;
    give_host_address(socket, socket->host->ip);
    sim_patience_heard(socket);
    sim_patience_begin(socket);
    socket->peer_host = ip.s_addr == htonl(INADDR_LOOPBACK) ? socket->host : sim_host_at(ip);
    if (socket->peer_host)
        sim_convey(socket, socket->host, SIM_KNOCK, (struct text){NULL, 0});
}

void sim_knock_arrived(struct sim_socket *client)
{
    struct sim_socket *listener = listener_at(&client->peer_address, NULL, client->peer_host);
    const struct sockaddr_storage address = client->peer_address;

    if (listener && listener->waits < listener->backlog)
        knock(listener, client, &address);
    else if (listener)
        sim_knock_again(client);
    else
        sim_convey(client, client->peer_host, SIM_REFUSAL, (struct text){NULL, 0});
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    struct sim_socket *socket = sim_socket_of(fd);
    struct sockaddr_storage address = {0};

    if (!socket)
        return SYSTEM(connect)(fd, to, len);
    if (socket->state != SIM_FRESH)
        return sim_fail(socket->state == SIM_CONNECTING ? EALREADY : EISCONN);
    memcpy(&address, to.__sockaddr__, len < sizeof address ? len : sizeof address);
    if (!socket->host)
        return socket->is_unix ? connect_unix(socket, &address) : connect_tcp(socket, &address);
    if (address.ss_family != AF_INET)
        return sim_fail(ENETUNREACH);
    CHECK(!sim_may_block(socket));
    sim_begin_to_connect(socket, &address);
    return sim_fail(EINPROGRESS);
}

int accept4(int fd, __SOCKADDR_ARG ret_address, socklen_t *restrict ret_len, int flags)
{
    struct sim_socket *listener = sim_socket_of(fd), *accepted;
    int taken;

    if (!listener)
        return SYSTEM(accept4)(fd, ret_address, ret_len, flags);
    if (listener->state != SIM_LISTENING)
        return sim_fail(EINVAL);
    while (listener->waits == 0) {
        if (!sim_may_block(listener))
            return sim_fail(EAGAIN);
        sim_let_others();
    }
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
