#include "exchange.h"
#include "deadline.h"
#include "history.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNS_MAX = 64, LATE_BYTES = 2, EVENTS_MAX = 128 };

/* Of ids, too. */
#define TOKEN_CHARACTERS "0123456789abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ-"

struct conn {
    int fd; /* -1: closed */
    unsigned node;
    bool busy;
    exchange_done *done;
    void *arg;
    int64_t start_ns;
    int64_t late_until_ms; /* the last bytes wait till then; 0: they do not wait */
    int64_t deadline_ms;
    unsigned timeout_ms;
    size_t out_len, out_sent, in_len;
    char out[EXCHANGE_REQUEST_BYTES];
    char in[EXCHANGE_ANSWER_BYTES];
};

struct exchange {
    exchange_socket *open_socket;
    void *arg;
    int epoll;
    size_t open;
    struct conn conns[EXCHANGE_NODES_MAX][CONNS_MAX];
};

static void conn_close(struct conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
}

/* answer.start_ns and end_ns are filled in here. */
static void conn_complete(struct exchange *exchange, struct conn *conn, struct exchange_answer answer)
{
    exchange_done *done = conn->done;

    answer.start_ns = conn->start_ns;
    answer.end_ns = history_now_ns();
    conn->busy = false;
    exchange->open--;
    done(conn->arg, &answer);
}

static void conn_fail(struct exchange *exchange, struct conn *conn)
{
    conn_close(conn);
    if (conn->busy)
        conn_complete(exchange, conn, (struct exchange_answer){.head = "", .body = ""});
}

/* False when the connection broke. */
static bool conn_write(struct conn *conn)
{
    size_t end = conn->late_until_ms ? conn->out_len - LATE_BYTES : conn->out_len;

    while (conn->out_sent < end) {
        ssize_t sent = send(conn->fd, conn->out + conn->out_sent, end - conn->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
        conn->out_sent += (size_t)sent;
    }
    return true;
}

/* The length of the body, or -1 without a Content-Length of a sane size. */
static long body_length(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");
    long length = field ? strtol(field + strlen("\r\ncontent-length:"), NULL, 10) : -1;

    return length < EXCHANGE_ANSWER_BYTES ? length : -1;
}

/* Whether a whole answer is there; then it is told. *ret_broken: the bytes can't be an answer. */
static bool conn_parse(struct exchange *exchange, struct conn *conn, bool *ret_broken)
{
    char *end;

    conn->in[conn->in_len] = '\0';
    end = strstr(conn->in, "\r\n\r\n");
    if (!end)
        return false;
    end[2] = '\0'; /* the last field keeps its end of line */
    long length = body_length(conn->in);
    *ret_broken = length < 0 || strncmp(conn->in, "HTTP/1.1 ", 9) != 0;
    if (*ret_broken)
        return false;
    end[2] = '\r';
    if (conn->in_len < (size_t)(end + 4 - conn->in) + (size_t)length)
        return false;
    end[2] = '\0';
    /* Where the answer did not wait for the last bytes, the node still does: what came next would be taken for them. */
    if (strcasestr(conn->in, "\r\nconnection: close\r\n") || conn->out_sent < conn->out_len)
        conn_close(conn);
    conn->in_len = 0;
    conn_complete(
        exchange, conn,
        (struct exchange_answer){.status = (int)strtol(conn->in + 9, NULL, 10), .head = conn->in, .body = end + 4});
    return true;
}

/* Reads all there is: the events of epoll are told once. */
static void conn_read(struct exchange *exchange, struct conn *conn)
{
    bool is_broken = false;

    while (conn->fd >= 0 && !is_broken) {
        size_t room = sizeof conn->in - 1 - conn->in_len;
        ssize_t got = room ? recv(conn->fd, conn->in + conn->in_len, room, MSG_DONTWAIT) : 0;

        if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            return;
        is_broken = got <= 0 || !conn->busy; /* without a request nothing may come */
        if (!is_broken) {
            conn->in_len += (size_t)got;
            conn_parse(exchange, conn, &is_broken);
        }
    }
    if (is_broken)
        conn_fail(exchange, conn);
}

/* The deadline passed: an answer may have come this very moment, and another request been begun for it. */
static void conn_expire(struct exchange *exchange, struct conn *conn, int64_t now_ms)
{
    conn_read(exchange, conn);
    if (conn->busy && conn->deadline_ms <= now_ms)
        conn_fail(exchange, conn);
}

static bool conn_connect(struct exchange *exchange, struct conn *conn, unsigned node)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    uint16_t port;

    conn->node = node;
    conn->fd = exchange->open_socket(exchange->arg, node, &port);
    if (conn->fd < 0)
        return false;
    address.sin_port = htons(port);
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if ((connect(conn->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(exchange->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0) {
        conn_close(conn);
        return false;
    }
    return true;
}

/* One that is open before one that must be made. */
static struct conn *conn_pick(struct exchange *exchange, unsigned node)
{
    struct conn *conns = exchange->conns[node];
    struct conn *closed = NULL;

    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (conns[i].busy)
            continue;
        if (conns[i].fd >= 0)
            return &conns[i];
        closed = closed ? closed : &conns[i];
    }
    return closed && conn_connect(exchange, closed, node) ? closed : NULL;
}

bool exchange_send(struct exchange *exchange, const struct exchange_request *request)
{
    struct conn *conn = conn_pick(exchange, request->node);

    if (!conn || request->len > sizeof conn->out)
        return false;
    memcpy(conn->out, request->bytes, request->len);
    conn->out_len = request->len;
    conn->out_sent = conn->in_len = 0;
    conn->busy = true;
    conn->done = request->done;
    conn->arg = request->arg;
    conn->late_until_ms = request->late_ms ? deadline_now_ms() + request->late_ms : 0;
    conn->timeout_ms = request->timeout_ms;
    conn->deadline_ms = deadline_now_ms() + request->late_ms + request->timeout_ms;
    exchange->open++;
    conn->start_ns = history_now_ns();
    if (!conn_write(conn))
        shutdown(conn->fd, SHUT_RDWR); /* the end is told in the next turn */
    return true;
}

static void conn_look_at_clock(struct exchange *exchange, struct conn *conn, int64_t now_ms)
{
    if (!conn->busy)
        return;
    if (conn->late_until_ms && conn->late_until_ms <= now_ms) {
        conn->late_until_ms = 0;
        conn->start_ns = history_now_ns();
        if (!conn_write(conn))
            conn_fail(exchange, conn);
    } else if (conn->deadline_ms <= now_ms) {
        conn_expire(exchange, conn, now_ms);
    }
}

void exchange_turn(struct exchange *exchange, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(exchange->epoll, events, EVENTS_MAX, timeout_ms);

    for (int i = 0; i < count; i++) {
        struct conn *conn = events[i].data.ptr;
        if (conn->fd >= 0 && conn->busy && !conn_write(conn))
            conn_fail(exchange, conn);
        if (conn->fd >= 0)
            conn_read(exchange, conn);
    }
    int64_t now_ms = deadline_now_ms();
    for (unsigned node = 0; node < EXCHANGE_NODES_MAX; node++)
        for (size_t i = 0; i < CONNS_MAX; i++)
            conn_look_at_clock(exchange, &exchange->conns[node][i], now_ms);
}

size_t exchange_open(const struct exchange *exchange)
{
    return exchange->open;
}

bool exchange_copy_after(const char *text, const char *mark, char *ret_value, size_t size)
{
    const char *at = strstr(text, mark);

    if (!at)
        return false;
    at += strlen(mark);
    snprintf(ret_value, size, "%.*s", (int)strspn(at, TOKEN_CHARACTERS), at);
    return true;
}

struct exchange *exchange_create(exchange_socket *open_socket, void *arg)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);

    if (!exchange)
        abort();
    exchange->open_socket = open_socket;
    exchange->arg = arg;
    exchange->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (exchange->epoll < 0)
        abort();
    for (unsigned node = 0; node < EXCHANGE_NODES_MAX; node++)
        for (size_t i = 0; i < CONNS_MAX; i++)
            exchange->conns[node][i].fd = -1;
    return exchange;
}

void exchange_destroy(struct exchange *exchange)
{
    for (unsigned node = 0; node < EXCHANGE_NODES_MAX; node++)
        for (size_t i = 0; i < CONNS_MAX; i++)
            conn_fail(exchange, &exchange->conns[node][i]);
    close(exchange->epoll);
    free(exchange);
}
