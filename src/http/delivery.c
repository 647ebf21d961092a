/* Has the peer got the answer? Its kernel's acknowledgement is the most that can be known without its help: while
 * somebody waits, it is polled how many bytes of the connection were acknowledged, and once more as the connection
 * ends: a client may take its answer and reset the connection at once. The same tick tells those who wait on a request
 * whose connection has failed, so that nothing is told inside the call that caused it. */
#include "request_internal.h"

#include "base/check.h"
#include "http/response.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void watch(struct http_request *request)
{
    struct http_server *server = request->server;

    list_remove(&request->in_deliveries);
    list_append(&server->deliveries, &request->in_deliveries);
    if (!uv_is_active((uv_handle_t *)&server->delivery_timer))
        uv_timer_start(&server->delivery_timer, delivery_on_timer, DELIVERY_POLL_MS, 0);
}

void http_response_on_delivered(struct http_request *request, void (*done)(void *arg, bool delivered), void *arg)
{
    CHECK(!request->is_replied && request->delivery == DELIVERY_NONE);
    request_pin(request);
    request->delivery = DELIVERY_ASKED;
    request->delivered = done;
    request->delivered_arg = arg;
    if (request->is_gone)
        watch(request);
}

bool delivery_begin(struct http_request *request)
{
    if (request->delivery != DELIVERY_ASKED)
        return false;
    request->delivery = DELIVERY_WRITTEN;
    watch(request);
    return true;
}

static void delivery_end(struct http_request *request, bool delivered)
{
    if (request->delivery == DELIVERY_NONE)
        return;
    request->delivery = DELIVERY_NONE;
    list_remove(&request->in_deliveries);
    request->delivered(request->delivered_arg, delivered);
    if (request->conn && !request->is_gone)
        conn_delivered(request->conn);
    request_unpin(request);
}

enum acknowledgement { ACKNOWLEDGED, NOT_YET, NEVER };

/* A Unix socket: what is written is acknowledged when it is read. The order matters: a peer that closes before it has
 * read empties the queue too, so the trace of that is looked for after the queue was seen empty. */
static enum acknowledgement acknowledgement_of_unix(int fd)
{
    int unread = 0, error = 0;
    socklen_t bytes = sizeof error;

    if (ioctl(fd, SIOCOUTQ, &unread) != 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
        return NEVER;
    return unread == 0 ? ACKNOWLEDGED : NOT_YET;
}

/* What Linux answers to TCP_INFO since 4.1; the C library's struct ends earlier. */
struct tcp_counts {
    struct tcp_info info;
    uint64_t pacing_rate, max_pacing_rate;
    uint64_t bytes_acked; /* RFC 4898, tcpEStatsAppHCThruOctetsAcked */
};
_Static_assert(offsetof(struct tcp_counts, bytes_acked) == 120, "as in linux/tcp.h");

static bool read_tcp(int fd, struct tcp_counts *ret_counts)
{
    socklen_t bytes = sizeof *ret_counts;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret_counts, &bytes) == 0 && bytes == sizeof *ret_counts;
}

/* Of a TCP socket the kernel counts the bytes that were acknowledged, and keeps the count when a reset closes it,
 * though the queue is emptied. */
static enum acknowledgement acknowledgement_of(const struct conn *conn)
{
    struct tcp_counts tcp;

    if (!read_tcp(conn->socket.fd, &tcp))
        return acknowledgement_of_unix(conn->socket.fd);
    if (tcp.bytes_acked >= conn->taken_bytes)
        return ACKNOWLEDGED;
    return tcp.info.tcpi_state == TCP_CLOSE ? NEVER : NOT_YET;
}

/* As the connection ends. A Unix socket has nothing left to tell: there, a peer that has read all and closes is at its
 * end of file, not lost. */
static bool was_acknowledged(const struct conn *conn)
{
    struct tcp_counts tcp;

    return read_tcp(conn->socket.fd, &tcp) && tcp.bytes_acked >= conn->taken_bytes;
}

/* The last byte goes by itself. A kernel delays the acknowledgement of a single segment by 40 ms or more, so that a
 * client that reads its answer and resets the connection would have acknowledged nothing; after two small ones Linux
 * acknowledges as soon as they are read. */
bool delivery_send(struct conn *conn, struct text answer)
{
    bool is_taken = output_send(conn, (struct text){answer.ptr, answer.len - 1}, (struct text){NULL, 0});

    if (conn->state == CONN_CLOSED)
        return false;
    return output_send(conn, text_skip(answer, answer.len - 1), (struct text){NULL, 0}) && is_taken;
}

void delivery_tell_lost(struct http_request *request)
{
    request->was_delivered = request->delivery == DELIVERY_WRITTEN && was_acknowledged(request->conn);
    watch(request);
}

void delivery_poll(struct http_request *request)
{
    enum acknowledgement seen = acknowledgement_of(request->conn);

    if (seen == ACKNOWLEDGED)
        delivery_end(request, true);
    else if (seen == NEVER)
        conn_disconnect(request->conn);
    else
        watch(request);
}

static void tell_lost(struct http_request *request)
{
    request_pin(request);
    request_body_ended(request, HTTP_BODY_FAILED);
    delivery_end(request, request->was_delivered);
    request_unpin(request);
}

void delivery_on_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    struct list batch, *node;

    /* What is added meanwhile is for the next tick. */
    list_init(&batch);
    list_append(&server->deliveries, &batch);
    list_remove(&server->deliveries);
    while ((node = list_first(&batch))) {
        struct http_request *request = LIST_ENTRY(node, struct http_request, in_deliveries);

        list_remove(node);
        if (request->is_gone)
            tell_lost(request);
        else
            delivery_poll(request);
    }
}
