#include "redis_proxy.h"
#include "deadline.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNS_MAX = 512, /* four for each partition of each node */
    READ_BYTES = 16 * 1024,
    FLOW_MAX_BYTES = 16 * 1024 * 1024, /* beyond it the sender waits, as for any slow receiver */
    GREETING_BYTES = 512,              /* the name is among the first bytes */
    LISTEN_BACKLOG = 64,
    SOCKET_PATH_BYTES = 108
};

struct chunk {
    struct chunk *next;
    int64_t came_ms;
    unsigned delay_ms;
    size_t len, sent;
    char bytes[];
};

/* Bytes that one side has sent and the other has not received yet. */
struct flow {
    struct chunk *first, *last;
    size_t waiting;
    bool ended;   /* the sender has closed */
    bool is_full; /* the receiver accepts no more for now */
};

/* fds and flows by direction: fds[d] is the sender's side of flows[d]. */
struct conn {
    bool used;
    unsigned node;
    enum redis_proxy_link link;
    int fds[REDIS_PROXY_DIRECTIONS];
    struct flow flows[REDIS_PROXY_DIRECTIONS];
    char greeting[GREETING_BYTES];
    size_t greeting_len;
};

struct weather {
    unsigned delay_ms[REDIS_PROXY_DIRECTIONS];
    bool held[REDIS_PROXY_DIRECTIONS];
    bool refused;
};

struct redis_proxy {
    pthread_t thread;
    pthread_mutex_t lock; /* held by the thread except while it polls */
    int wake;
    bool stop;
    char socket_paths[REDIS_PROXY_NODES_MAX][SOCKET_PATH_BYTES];
    unsigned nodes;
    int listeners[REDIS_PROXY_NODES_MAX];
    uint16_t ports[REDIS_PROXY_NODES_MAX];
    struct weather weather[REDIS_PROXY_NODES_MAX][REDIS_PROXY_LINKS];
    struct conn conns[CONNS_MAX];
};

static const struct {
    const char *name;
    enum redis_proxy_link link;
} NAMES[] = {{"chatelaine-reads", REDIS_PROXY_READS},
             {"chatelaine-scripts", REDIS_PROXY_SCRIPTS},
             {"chatelaine-changes", REDIS_PROXY_CHANGES},
             {"chatelaine-invalidations", REDIS_PROXY_INVALIDATIONS}};

/* Connections */

static void flow_empty(struct flow *flow)
{
    while (flow->first) {
        struct chunk *chunk = flow->first;
        flow->first = chunk->next;
        free(chunk);
    }
    *flow = (struct flow){0};
}

static void conn_end(struct conn *conn, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    if (reset)
        setsockopt(conn->fds[REDIS_PROXY_TO_REDIS], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    for (unsigned d = 0; d < REDIS_PROXY_DIRECTIONS; d++) {
        close(conn->fds[d]);
        flow_empty(&conn->flows[d]);
    }
    conn->used = false;
}

static int connect_to_redis(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(address.sun_path, socket_path, SOCKET_PATH_BYTES);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void conn_accept(struct redis_proxy *proxy, unsigned node)
{
    struct conn *conn = proxy->conns;
    int fd = accept4(proxy->listeners[node], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    while (conn < proxy->conns + CONNS_MAX && conn->used)
        conn++;
    int redis = conn == proxy->conns + CONNS_MAX ? -1 : connect_to_redis(proxy->socket_paths[node]);
    if (redis < 0) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    *conn = (struct conn){.used = true, .node = node, .link = REDIS_PROXY_UNNAMED};
    conn->fds[REDIS_PROXY_TO_REDIS] = fd;
    conn->fds[REDIS_PROXY_TO_NODE] = redis;
    if (proxy->weather[node][REDIS_PROXY_UNNAMED].refused)
        conn_end(conn, true);
}

/* The node's first bytes contain the name, as a whole bulk string. */
static void conn_learn_name(struct conn *conn, const char *bytes, size_t len)
{
    size_t room = sizeof conn->greeting - conn->greeting_len;

    if (conn->link != REDIS_PROXY_UNNAMED || room == 0)
        return;
    memcpy(conn->greeting + conn->greeting_len, bytes, len < room ? len : room);
    conn->greeting_len += len < room ? len : room;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (memmem(conn->greeting, conn->greeting_len, NAMES[i].name, strlen(NAMES[i].name)))
            conn->link = NAMES[i].link;
    }
}

static void conn_read(struct redis_proxy *proxy, struct conn *conn, enum redis_proxy_direction direction,
                      int64_t now_ms)
{
    struct flow *flow = &conn->flows[direction];
    struct chunk *chunk = malloc(sizeof *chunk + READ_BYTES);

    if (!chunk)
        test_give_up("out of memory");
    ssize_t got = recv(conn->fds[direction], chunk->bytes, READ_BYTES, MSG_DONTWAIT);
    if (got <= 0) {
        flow->ended = got == 0 || (errno != EAGAIN && errno != EINTR);
        free(chunk);
        return;
    }
    struct chunk *fitting = realloc(chunk, sizeof *chunk + (size_t)got);
    chunk = fitting ? fitting : chunk;
    chunk->next = NULL;
    chunk->came_ms = now_ms;
    chunk->len = (size_t)got;
    chunk->sent = 0;
    if (flow->first)
        flow->last->next = chunk;
    else
        flow->first = chunk;
    flow->last = chunk;
    flow->waiting += chunk->len;
    if (direction == REDIS_PROXY_TO_REDIS)
        conn_learn_name(conn, chunk->bytes, chunk->len);
    chunk->delay_ms = proxy->weather[conn->node][conn->link].delay_ms[direction];
}

/* A shortened delay applies to waiting bytes too; a lengthened one does not. */
static int64_t chunk_due_ms(const struct redis_proxy *proxy, const struct conn *conn, unsigned direction)
{
    const struct chunk *chunk = conn->flows[direction].first;
    unsigned now_ms = proxy->weather[conn->node][conn->link].delay_ms[direction];

    return chunk->came_ms + (now_ms < chunk->delay_ms ? now_ms : chunk->delay_ms);
}

/* Forwards what is due. False: the receiver is gone, or the sender is gone and everything it sent has been
 * forwarded. */
static bool conn_forward(struct redis_proxy *proxy, struct conn *conn, enum redis_proxy_direction direction,
                         int64_t now_ms)
{
    const struct weather *weather = &proxy->weather[conn->node][conn->link];
    struct flow *flow = &conn->flows[direction];

    if (weather->held[direction])
        return true;
    flow->is_full = false;
    while (flow->first && chunk_due_ms(proxy, conn, direction) <= now_ms) {
        struct chunk *chunk = flow->first;
        ssize_t sent = send(conn->fds[!direction], chunk->bytes + chunk->sent, chunk->len - chunk->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        flow->is_full = sent < 0;
        if (flow->is_full)
            return true;
        chunk->sent += (size_t)sent;
        flow->waiting -= (size_t)sent;
        if (chunk->sent < chunk->len)
            continue;
        flow->first = chunk->next;
        free(chunk);
    }
    return flow->first || !flow->ended;
}

static void conn_step(struct redis_proxy *proxy, struct conn *conn, int64_t now_ms)
{
    if (conn->link != REDIS_PROXY_UNNAMED && proxy->weather[conn->node][conn->link].refused)
        conn_end(conn, true);
    else if (!conn_forward(proxy, conn, REDIS_PROXY_TO_REDIS, now_ms) ||
             !conn_forward(proxy, conn, REDIS_PROXY_TO_NODE, now_ms))
        conn_end(conn, false);
}

/* The loop */

/* When the flow's next byte is due, in ms from now; -1 if none waits for its time. */
static int flow_due_in(const struct redis_proxy *proxy, const struct conn *conn, unsigned direction, int64_t now_ms)
{
    const struct weather *weather = &proxy->weather[conn->node][conn->link];
    const struct flow *flow = &conn->flows[direction];

    if (!flow->first || weather->held[direction] || flow->is_full)
        return -1;
    int64_t due_ms = chunk_due_ms(proxy, conn, direction) - now_ms;
    return due_ms < 0 ? 0 : (int)due_ms;
}

struct watch {
    struct pollfd fds[1 + REDIS_PROXY_NODES_MAX + 2 * CONNS_MAX];
    int timeout_ms;
};

static void watch_fill(struct redis_proxy *proxy, struct watch *watch)
{
    int64_t now_ms = deadline_now_ms();
    struct pollfd *next = watch->fds;

    watch->timeout_ms = -1;
    *next++ = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
    for (unsigned i = 0; i < REDIS_PROXY_NODES_MAX; i++)
        *next++ = (struct pollfd){.fd = i < proxy->nodes ? proxy->listeners[i] : -1, .events = POLLIN};
    for (int i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &proxy->conns[i];
        for (unsigned d = 0; d < REDIS_PROXY_DIRECTIONS; d++, next++) {
            *next = (struct pollfd){.fd = -1};
            if (!conn->used)
                continue;
            int due_ms = flow_due_in(proxy, conn, d, now_ms);
            if (due_ms >= 0 && (watch->timeout_ms < 0 || due_ms < watch->timeout_ms))
                watch->timeout_ms = due_ms;
            if (!conn->flows[d].ended && conn->flows[d].waiting < FLOW_MAX_BYTES)
                next->events |= POLLIN;
            if (conn->flows[!d].is_full)
                next->events |= POLLOUT;
            next->fd = next->events ? conn->fds[d] : -1;
        }
    }
}

static void watch_handle(struct redis_proxy *proxy, const struct watch *watch)
{
    int64_t now_ms = deadline_now_ms();
    const struct pollfd *conns = watch->fds + 1 + REDIS_PROXY_NODES_MAX;
    uint64_t woken;

    if (watch->fds[0].revents)
        (void)!read(proxy->wake, &woken, sizeof woken);
    for (unsigned i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &proxy->conns[i];
        for (unsigned d = 0; d < REDIS_PROXY_DIRECTIONS; d++) {
            /* It may have been cut while the thread polled; then its descriptor is closed or reused. */
            const struct pollfd *polled = &conns[2 * i + d];
            if (conn->used && polled->fd == conn->fds[d] && (polled->revents & (POLLIN | POLLHUP | POLLERR)) &&
                !conn->flows[d].ended)
                conn_read(proxy, conn, d, now_ms);
        }
        if (conn->used)
            conn_step(proxy, conn, now_ms);
    }
    for (unsigned i = 0; i < proxy->nodes; i++) {
        if (watch->fds[1 + i].revents)
            conn_accept(proxy, i);
    }
}

static void *proxy_run(void *arg)
{
    struct redis_proxy *proxy = arg;
    struct watch watch;

    pthread_mutex_lock(&proxy->lock);
    while (!proxy->stop) {
        watch_fill(proxy, &watch);
        pthread_mutex_unlock(&proxy->lock);
        (void)poll(watch.fds, sizeof watch.fds / sizeof *watch.fds, watch.timeout_ms);
        pthread_mutex_lock(&proxy->lock);
        watch_handle(proxy, &watch);
    }
    pthread_mutex_unlock(&proxy->lock);
    return NULL;
}

/* Called by other threads */

static int listen_on(const char *text, uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (inet_pton(AF_INET, text, &address.sin_addr) != 1 || fd < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, LISTEN_BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        test_give_up("the proxy cannot listen on %s: %s", text, strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

struct redis_proxy *redis_proxy_start(const char *socket_path, unsigned nodes, const char *const *addresses)
{
    struct redis_proxy *proxy = calloc(1, sizeof *proxy);

    if (!proxy || nodes > REDIS_PROXY_NODES_MAX || strlen(socket_path) >= SOCKET_PATH_BYTES)
        test_give_up("no proxy for %u nodes and %s", nodes, socket_path);
    for (unsigned i = 0; i < nodes; i++)
        memcpy(proxy->socket_paths[i], socket_path, strlen(socket_path));
    proxy->nodes = nodes;
    for (unsigned i = 0; i < nodes; i++)
        proxy->listeners[i] = listen_on(addresses[i], &proxy->ports[i]);
    proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&proxy->lock, NULL);
    if (proxy->wake < 0 || pthread_create(&proxy->thread, NULL, proxy_run, proxy) != 0)
        test_give_up("no thread for the proxy");
    return proxy;
}

static void unlock_and_wake(struct redis_proxy *proxy)
{
    uint64_t one = 1;

    pthread_mutex_unlock(&proxy->lock);
    (void)!write(proxy->wake, &one, sizeof one);
}

void redis_proxy_stop(struct redis_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->stop = true;
    unlock_and_wake(proxy);
    pthread_join(proxy->thread, NULL);
    for (int i = 0; i < CONNS_MAX; i++) {
        if (proxy->conns[i].used)
            conn_end(&proxy->conns[i], false);
    }
    for (unsigned i = 0; i < proxy->nodes; i++)
        close(proxy->listeners[i]);
    close(proxy->wake);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

uint16_t redis_proxy_port(const struct redis_proxy *proxy, unsigned node)
{
    return proxy->ports[node];
}

void redis_proxy_delay(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                       enum redis_proxy_direction direction, unsigned ms)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->weather[node][link].delay_ms[direction] = ms;
    unlock_and_wake(proxy);
}

void redis_proxy_hold(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                      enum redis_proxy_direction direction, bool held)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->weather[node][link].held[direction] = held;
    unlock_and_wake(proxy);
}

void redis_proxy_refuse(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool refused)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->weather[node][link].refused = refused;
    unlock_and_wake(proxy);
}

void redis_proxy_cut(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool reset)
{
    pthread_mutex_lock(&proxy->lock);
    for (int i = 0; i < CONNS_MAX; i++) {
        if (proxy->conns[i].used && proxy->conns[i].node == node && proxy->conns[i].link == link)
            conn_end(&proxy->conns[i], reset);
    }
    unlock_and_wake(proxy);
}

void redis_proxy_redirect(struct redis_proxy *proxy, unsigned node, const char *socket_path)
{
    if (strlen(socket_path) >= SOCKET_PATH_BYTES)
        test_give_up("the proxy cannot reach %s", socket_path);
    pthread_mutex_lock(&proxy->lock);
    memset(proxy->socket_paths[node], 0, SOCKET_PATH_BYTES);
    memcpy(proxy->socket_paths[node], socket_path, strlen(socket_path));
    for (int i = 0; i < CONNS_MAX; i++) { /* these would be at the former one, whatever is refused or cut */
        if (proxy->conns[i].used && proxy->conns[i].node == node && proxy->conns[i].link == REDIS_PROXY_UNNAMED)
            conn_end(&proxy->conns[i], true);
    }
    unlock_and_wake(proxy);
}
