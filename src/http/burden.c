/* What peers make the server hold: requests that have not come whole, answers that are not read. All connections
 * together have a bound for each; beyond it the one that holds most is cut, whoever made the bound overflow. */
#include "conn_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"

void burden_init(struct http_server *server)
{
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++)
        for (int class = 0; class < BURDEN_CLASSES; class ++)
            list_init(&server->burdens[kind].by_size[class]);
}

/* Doubling sizes: to find about the heaviest must not cost a look at all. */
static int class_of(size_t bytes)
{
    int class = 63 - __builtin_clzll(bytes);

    return class < BURDEN_CLASSES ? class : BURDEN_CLASSES - 1;
}

static void note(struct conn *conn, enum burden_kind kind, size_t bytes)
{
    struct burden *burden = &conn->server->burdens[kind];
    struct load *load = &conn->loads[kind];

    burden->bytes += bytes - load->bytes;
    load->bytes = bytes;
    list_remove(&load->in_class);
    if (bytes > 0)
        list_append(&burden->by_size[class_of(bytes)], &load->in_class);
}

static struct conn *heaviest(struct http_server *server, enum burden_kind kind)
{
    for (int class = BURDEN_CLASSES - 1; class >= 0; class --) {
        struct list *node = list_first(&server->burdens[kind].by_size[class]);

        if (node)
            return LIST_ENTRY(node, struct conn, loads[kind].in_class);
    }
    UNREACHABLE();
}

static void cut(struct conn *conn, enum burden_kind kind)
{
    static const char *const WHY[BURDEN_KINDS] = {
        [BURDEN_INPUT] = "connection cut: unfinished requests exceed the limit, and it holds the most",
        [BURDEN_OUTPUT] = "connection cut: unread responses exceed the limit, and it holds the most",
    };
    struct http_server *server = conn->server;

    metric_add(METRIC_CONNECTIONS_SHED, 1);
    if (log_pause_is_over(&server->burdens[kind].pause, uv_now(server->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, WHY[kind], log_str("peer", conn->peer), log_int("bytes", (int64_t)conn->loads[kind].bytes),
            log_int("all_bytes", (int64_t)server->burdens[kind].bytes));
    conn_disconnect(conn);
}

void burden_set(struct conn *conn, enum burden_kind kind, size_t bytes)
{
    struct http_server *server = conn->server;

    if (conn->loads[kind].bytes == bytes)
        return;
    note(conn, kind, bytes);
    while (server->burdens[kind].bytes > (size_t)server->settings.waiting_max_bytes)
        cut(heaviest(server, kind), kind);
}

void burden_forget(struct conn *conn)
{
    for (enum burden_kind kind = 0; kind < BURDEN_KINDS; kind++)
        note(conn, kind, 0);
}
