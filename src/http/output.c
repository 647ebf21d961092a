/* The way out of a connection: what its socket takes at once, and what waits until the peer reads on. */
#include "conn_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that wait. */
struct output {
    struct list in_conn;
    struct text rest; /* of memory: what the socket has not taken yet */
    size_t bytes;
    char memory[];
};

static void output_free(struct output *output)
{
    list_remove(&output->in_conn);
    secure_wipe(output->memory, output->bytes);
    free(output);
}

static struct output *output_first(struct conn *conn)
{
    struct list *node = list_first(&conn->outputs);

    return node ? LIST_ENTRY(node, struct output, in_conn) : NULL;
}

static void count_gone(struct conn *conn, size_t bytes)
{
    conn->waiting_bytes -= bytes;
    conn->server->unwritten_bytes -= bytes;
}

void output_drop(struct conn *conn)
{
    struct output *output;

    while ((output = output_first(conn)))
        output_free(output);
    count_gone(conn, conn->waiting_bytes);
}

/* Peers that do not read make us hold answers for them, but all together no more than this. */
static bool may_queue(struct conn *conn, size_t bytes)
{
    struct http_server *server = conn->server;

    if (server->unwritten_bytes + bytes <= UNWRITTEN_MAX_BYTES)
        return true;
    metric_add(METRIC_CONNECTIONS_SHED, 1);
    if (log_pause_is_over(&server->unread_pause, uv_now(server->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, "a connection is cut, for too much waits for peers that do not read their answers",
            log_str("peer", conn->peer), log_int("waiting_bytes", (int64_t)server->unwritten_bytes));
    return false;
}

/* What the socket's buffer does not take at once. */
static void queue_rest(struct conn *conn, struct text rest)
{
    struct output *output;

    if (!may_queue(conn, rest.len)) {
        conn_disconnect(conn);
        return;
    }
    output = mem_alloc(sizeof *output + rest.len);
    memcpy(output->memory, rest.ptr, rest.len);
    output->bytes = rest.len;
    output->rest = (struct text){output->memory, rest.len};
    list_append(&conn->outputs, &output->in_conn);
    conn->waiting_bytes += rest.len;
    conn->server->unwritten_bytes += rest.len;
    conn_await(conn);
}

static ssize_t send_now(struct conn *conn, struct text bytes)
{
    ssize_t taken = socket_send(&conn->socket, bytes);

    if (taken > 0)
        conn->taken_bytes += (size_t)taken;
    return taken;
}

bool output_send(struct conn *conn, struct text bytes)
{
    ssize_t taken = list_empty(&conn->outputs) ? send_now(conn, bytes) : UV_EAGAIN;

    if (taken >= 0 && (size_t)taken == bytes.len)
        return true;
    if (taken < 0 && taken != UV_EAGAIN)
        conn_disconnect(conn);
    else
        queue_rest(conn, text_skip(bytes, taken < 0 ? 0 : (size_t)taken));
    return false;
}

void output_go_on(struct conn *conn)
{
    struct output *output;

    while ((output = output_first(conn))) {
        ssize_t taken = send_now(conn, output->rest);

        if (taken < 0) {
            if (taken != UV_EAGAIN)
                conn_disconnect(conn);
            return;
        }
        count_gone(conn, (size_t)taken);
        output->rest = text_skip(output->rest, (size_t)taken);
        if (output->rest.len > 0)
            return;
        output_free(output);
    }
    conn_output_taken(conn);
}
