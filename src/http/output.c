/* The way out of a connection: what its socket takes at once, and what waits until the peer reads on. */
#include "request_internal.h"

#include "base/mem.h"
#include "base/secure.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that wait. */
struct output {
    struct list in_conn;
    struct text rest; /* what the socket has not taken yet: of memory, or of what lasts */
    size_t bytes;     /* of memory */
    char memory[];
};

/* With what stands for it meanwhile. */
static void weigh(struct conn *conn)
{
    burden_set(conn, BURDEN_OUTPUT, list_empty(&conn->outputs) ? 0 : conn->output_bytes + sizeof *conn->request);
}

static void output_free(struct conn *conn, struct output *output)
{
    list_remove(&output->in_conn);
    conn->output_bytes -= sizeof *output + output->bytes;
    secure_wipe(output->memory, output->bytes);
    free(output);
}

static struct output *output_first(struct conn *conn)
{
    struct list *node = list_first(&conn->outputs);

    return node ? LIST_ENTRY(node, struct output, in_conn) : NULL;
}

void output_drop(struct conn *conn)
{
    struct output *output;

    while ((output = output_first(conn)))
        output_free(conn, output);
    conn->waiting_bytes = 0;
}

static void queue(struct conn *conn, struct text copied, struct text lasting)
{
    struct output *output = mem_alloc(sizeof *output + copied.len);

    if (copied.len > 0)
        memcpy(output->memory, copied.ptr, copied.len);
    output->bytes = copied.len;
    output->rest = copied.len > 0 ? (struct text){output->memory, copied.len} : lasting;
    list_append(&conn->outputs, &output->in_conn);
    conn->waiting_bytes += output->rest.len;
    conn->output_bytes += sizeof *output + output->bytes;
}

/* What the socket's buffer does not take at once. */
static void queue_rest(struct conn *conn, struct text rest, struct text lasting)
{
    size_t lasting_bytes = lasting.len < rest.len ? lasting.len : rest.len;

    if (rest.len > lasting_bytes)
        queue(conn, (struct text){rest.ptr, rest.len - lasting_bytes}, (struct text){NULL, 0});
    if (lasting_bytes > 0)
        queue(conn, (struct text){NULL, 0}, text_skip(lasting, lasting.len - lasting_bytes));
    weigh(conn);
    conn_await(conn);
}

static ssize_t send_now(struct conn *conn, struct text bytes)
{
    ssize_t taken = socket_send(&conn->socket, bytes);

    if (taken > 0)
        conn->taken_bytes += (size_t)taken;
    return taken;
}

bool output_send(struct conn *conn, struct text bytes, struct text lasting)
{
    ssize_t taken = list_empty(&conn->outputs) ? send_now(conn, bytes) : UV_EAGAIN;

    if (taken >= 0 && (size_t)taken == bytes.len)
        return true;
    if (taken < 0 && taken != UV_EAGAIN)
        conn_disconnect(conn);
    else
        queue_rest(conn, text_skip(bytes, taken < 0 ? 0 : (size_t)taken), lasting);
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
        conn->waiting_bytes -= (size_t)taken;
        output->rest = text_skip(output->rest, (size_t)taken);
        if (output->rest.len > 0)
            return;
        output_free(conn, output);
        weigh(conn);
    }
    conn_output_taken(conn);
}
