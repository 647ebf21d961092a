#include "delivery_internal.h"

#include "base/check.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { POLL_MS = 10 };

void deliveries_init(struct deliveries *deliveries, uv_loop_t *loop,
                     void (*settled)(struct delivery *delivery, bool is_delivered))
{
    CHECK(uv_timer_init(loop, &deliveries->timer) == 0);
    deliveries->timer.data = deliveries;
    deliveries->settled = settled;
    list_init(&deliveries->polled);
}

void deliveries_close(struct deliveries *deliveries, uv_close_cb closed, void *arg)
{
    deliveries->timer.data = arg;
    uv_close((uv_handle_t *)&deliveries->timer, closed);
}

void delivery_init(struct delivery *delivery)
{
    list_init(&delivery->in_polled);
}

void delivery_ask(struct delivery *delivery, void (*done)(void *arg, bool delivered), void *arg)
{
    REQUIRE(delivery->state == DELIVERY_NONE);
    delivery->state = DELIVERY_ASKED;
    delivery->done = done;
    delivery->arg = arg;
}

/* Sends the last byte on its own. A kernel delays the acknowledgement of a single segment by 40 ms or more, so a client
 * that reads its response and resets the connection would have acknowledged nothing. After two small segments, Linux
 * acknowledges as soon as they are read. */
enum output_result delivery_send(struct output *output, struct text answer)
{
    REQUIRE(answer.len > 0);
    struct text none = {NULL, 0}, most = {answer.ptr, answer.len - 1};
    enum output_result first = output_send(output, most, none);

    if (first == OUTPUT_FAILED)
        return OUTPUT_FAILED;
    return output_send(output, text_skip(answer, most.len), none);
}

static void on_timer(uv_timer_t *timer);

static void watch(struct deliveries *deliveries, struct delivery *delivery)
{
    list_remove(&delivery->in_polled);
    list_append(&deliveries->polled, &delivery->in_polled);
    if (!uv_is_active((uv_handle_t *)&deliveries->timer))
        uv_timer_start(&deliveries->timer, on_timer, POLL_MS, 0);
}

void delivery_begin(struct deliveries *deliveries, struct delivery *delivery, const struct output *output)
{
    REQUIRE(delivery->state == DELIVERY_ASKED);
    delivery->state = DELIVERY_WRITTEN;
    delivery->output = output;
    watch(deliveries, delivery);
}

enum acknowledgement { ACKNOWLEDGED, NOT_YET, NEVER };

/* On a Unix socket, bytes count as acknowledged when the peer has read them. The order matters: a peer that closes
 * before reading also empties the queue, so the error it leaves is looked for after the queue. */
static enum acknowledgement acknowledgement_of_unix(int fd)
{
    int unread = 0, error = 0;
    socklen_t bytes = sizeof error;

    if (ioctl(fd, SIOCOUTQ, &unread) != 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
        return NEVER;
    return unread == 0 ? ACKNOWLEDGED : NOT_YET;
}

/* TCP_INFO as Linux returns it since 4.1; the C library's struct ends earlier. */
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

/* For a TCP socket, the kernel counts acknowledged bytes, and keeps the count when a reset closes the socket and
 * empties its queue. */
static enum acknowledgement acknowledgement_of(const struct output *output)
{
    struct tcp_counts tcp;

    if (!read_tcp(output->socket->fd, &tcp))
        return acknowledgement_of_unix(output->socket->fd);
    if (tcp.bytes_acked >= output->taken_bytes)
        return ACKNOWLEDGED;
    return tcp.info.tcpi_state == TCP_CLOSE ? NEVER : NOT_YET;
}

/* Called as the connection ends. Only TCP still knows then. On a Unix socket nothing is missed: a peer that reads
 * everything and closes causes an end of file, which does not end a connection that waits for its delivery. */
static bool was_acknowledged(const struct output *output)
{
    struct tcp_counts tcp;

    return read_tcp(output->socket->fd, &tcp) && tcp.bytes_acked >= output->taken_bytes;
}

void delivery_lose(struct deliveries *deliveries, struct delivery *delivery)
{
    delivery->was_acknowledged = delivery->output && was_acknowledged(delivery->output);
    delivery->output = NULL;
    watch(deliveries, delivery);
}

void delivery_poll(struct deliveries *deliveries, struct delivery *delivery)
{
    REQUIRE(delivery->state == DELIVERY_WRITTEN && delivery->output);
    enum acknowledgement seen = acknowledgement_of(delivery->output);

    if (seen == NOT_YET)
        watch(deliveries, delivery);
    else
        deliveries->settled(delivery, seen == ACKNOWLEDGED);
}

static void on_timer(uv_timer_t *timer)
{
    struct deliveries *deliveries = timer->data;
    struct list batch, *node;

    /* Nodes that are added meanwhile wait for the next tick. */
    list_init(&batch);
    list_append(&deliveries->polled, &batch);
    list_remove(&deliveries->polled);
    while ((node = list_first(&batch))) {
        struct delivery *delivery = LIST_ENTRY(node, struct delivery, in_polled);

        list_remove(node);
        if (delivery->output)
            delivery_poll(deliveries, delivery);
        else
            deliveries->settled(delivery, delivery->was_acknowledged);
    }
}

bool delivery_end(struct delivery *delivery, bool is_delivered)
{
    if (delivery->state == DELIVERY_NONE)
        return false;
    delivery->state = DELIVERY_NONE;
    delivery->output = NULL;
    list_remove(&delivery->in_polled);
    delivery->done(delivery->arg, is_delivered);
    return true;
}
