/* The way out of a connection: what its socket takes at once, and what waits until the peer reads on. */
#include "conn_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "socket_internal.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that wait. */
struct output {
    uv_write_t io;
    size_t bytes;
    char memory[];
};

static void output_free(struct conn *conn, struct output *output)
{
    conn->server->unwritten_bytes -= output->bytes;
    secure_wipe(output->memory, output->bytes);
    free(output);
}

static void output_on_write(uv_write_t *io, int status)
{
    struct output *output = LIST_ENTRY(io, struct output, io);
    struct conn *conn = io->handle->data;

    output_free(conn, output);
    if (status != 0)
        conn_disconnect(conn);
    else if (uv_stream_get_write_queue_size(&conn->io.stream) == 0)
        conn_output_taken(conn);
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
    uv_buf_t view;

    if (!may_queue(conn, rest.len)) {
        conn_disconnect(conn);
        return;
    }
    output = mem_alloc(sizeof *output + rest.len);
    view = uv_buf_init(output->memory, (unsigned)rest.len);
    memcpy(output->memory, rest.ptr, rest.len);
    output->bytes = rest.len;
    conn->server->unwritten_bytes += rest.len;
    if (uv_write(&output->io, &conn->io.stream, &view, 1, output_on_write) != 0) {
        output_free(conn, output);
        conn_disconnect(conn);
    }
}

bool output_send(struct conn *conn, struct text bytes)
{
    ssize_t taken = socket_send(&conn->io.stream, bytes);

    if (taken >= 0 && (size_t)taken == bytes.len)
        return true;
    if (taken < 0 && taken != UV_EAGAIN)
        conn_disconnect(conn);
    else
        queue_rest(conn, text_skip(bytes, taken < 0 ? 0 : (size_t)taken));
    return false;
}
