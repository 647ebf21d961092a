/* Has the peer got the answer? Its kernel's acknowledgement is the most that can be known without its help: the bytes
 * that are written and not acknowledged (SIOCOUTQ) are polled while somebody waits. The same tick tells those who wait
 * on a request whose connection has failed, so that nothing is told inside the call that caused it. */
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

void delivery_tell_lost(struct http_request *request)
{
    watch(request);
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

/* The order matters: a reset empties the queue too, so its trace is looked for after the queue was seen empty. */
static enum acknowledgement acknowledgement_of(int fd)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    int unacknowledged = 0, error = 0;
    socklen_t error_bytes = sizeof error;

    if (ioctl(fd, SIOCOUTQ, &unacknowledged) != 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0 ||
        error != 0)
        return NEVER;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && info.tcpi_state == TCP_CLOSE)
        return NEVER;
    return unacknowledged == 0 ? ACKNOWLEDGED : NOT_YET;
}

void delivery_poll(struct http_request *request)
{
    enum acknowledgement seen = acknowledgement_of(request->conn->socket.fd);

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
    delivery_end(request, false);
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
