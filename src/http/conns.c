#include "conns_internal.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "peer_internal.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* This many connections beyond connections_max are answered 503; further ones are closed without a response. */
enum { SHED_ANSWERED_MAX = 64 };

void conns_init(struct conns *conns)
{
    list_init(&conns->all);
    deadlines_init(&conns->deadlines, conns->loop, conns->settings, conn_expire);
    burdens_init(&conns->burdens, conns->loop, (size_t)conns->settings->limits.waiting_max_bytes, conn_cut);
    next_turn_init(&conns->ready, conns->loop, conn_resume);
    handshakes_init(&conns->handshakes, conns->loop, (size_t)conns->settings->limits.tls_handshakes_max,
                    conn_shake_hands);
    conns->read_buffer = mem_alloc(READ_BUFFER_BYTES);
    conn_init_tls(conns);
}

void conns_close(struct conns *conns, uv_close_cb closed, void *arg)
{
    deadlines_close(&conns->deadlines, closed, arg);
    next_turn_close(&conns->ready, closed, arg);
    handshakes_close(&conns->handshakes, closed, arg);
}

void conns_finish(struct conns *conns)
{
    secure_wipe(conns->read_buffer, READ_BUFFER_BYTES);
    free(conns->read_buffer);
    conn_finish_tls(conns);
}

/* Iterating is safe: conn_disconnect() only marks a connection, which leaves the list once its handle has closed. */
void conns_disconnect(struct conns *conns)
{
    for (struct list *node = conns->all.next; node != &conns->all; node = node->next)
        conn_disconnect(LIST_ENTRY(node, struct conn, in_all));
}

void conns_end_quiet(struct conns *conns, uint64_t since_ms)
{
    for (struct list *node = conns->all.next; node != &conns->all; node = node->next) {
        struct conn *conn = LIST_ENTRY(node, struct conn, in_all);

        if (conn_is_quiet_since(conn, since_ms))
            conn_disconnect(conn);
    }
}

void conns_set_tls(struct conns *conns, struct tls_context *tls)
{
    int64_t closed = 0;

    conn_set_tls(conns, tls);
    for (struct list *node = conns->all.next; node != &conns->all; node = node->next) {
        struct conn *conn = LIST_ENTRY(node, struct conn, in_all);
        bool is_streaming = conn->request && conn->request->stream.is_open;

        if ((conn->state == CONN_IDLE || (is_streaming && conn->state != CONN_CLOSED)) && conn_has_lost_right(conn)) {
            conn_disconnect(conn);
            closed++;
        }
    }
    if (closed > 0)
        LOG(LOG_INFO, "connections closed: their clients' certificates are of the previous client CA",
            log_int("connections", closed));
}

/* Logs at most one line per interval, because such errors come in bursts. */
void conns_note_failure(struct conns *conns, int error)
{
    metric_add(METRIC_CONNECTIONS_SHED, 1);
    if (!log_pause_is_over(&conns->failure_pause, uv_now(conns->loop), COMPLAINT_INTERVAL_MS))
        return;
    LOG(LOG_WARN, "a connection could not be accepted", log_str("error", uv_strerror(error)),
        log_int("connections", (int64_t)conns->count));
}

/* Closes the longest idle connection. False: none is idle. */
static bool evict_idle(struct conns *conns)
{
    struct deadline *longest = deadline_first(&conns->deadlines, DEADLINE_IDLE);

    if (!longest)
        return false;
    conn_disconnect(LIST_ENTRY(longest, struct conn, deadline));
    return true;
}

/* When the server is full, the longest idle connection makes room: its client can open a new one. */
static bool make_room(struct conns *conns)
{
    if (conns->count < (size_t)conns->settings->limits.connections_max)
        return true;
    if (log_pause_is_over(&conns->eviction_pause, uv_now(conns->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, "connections-max is reached: idle connections are closed for new ones",
            log_int("connections", (int64_t)conns->count));
    return evict_idle(conns);
}

/* NULL: the descriptor is closed, and the error is noted. */
static struct conn *take(struct conns *conns, int fd, const struct sockaddr *peer, bool is_local)
{
    struct conn *conn = mem_alloc(sizeof *conn);
    int result = socket_open(&conn->socket, conns->loop, fd), on = 1;

    if (result != 0) {
        close(fd);
        free(conn);
        conns_note_failure(conns, result);
        return NULL;
    }
    /* Responses leave at once. A Unix socket refuses the option, and sends at once anyway. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peer_print(peer, conn->peer);
    conn->is_local = is_local;
    conn_begin(conn, conns);
    return conn;
}

static void shed(struct conns *conns, struct conn *conn)
{
    metric_add(METRIC_CONNECTIONS_SHED, 1);
    /* An answer over TLS would take a handshake first. */
    if ((conns->tls && !conn->is_local) ||
        conns->count > (size_t)conns->settings->limits.connections_max + SHED_ANSWERED_MAX)
        conn_disconnect(conn);
    else
        conn_refuse(conn, HTTP_ERROR_OVERLOADED);
}

/* Comes before make_room(): a stranger must not cost an idle connection its place. True: the descriptor is closed. */
static bool refuse_untrusted(struct conns *conns, int fd, const struct sockaddr *peer)
{
    const struct http_settings *settings = conns->settings;
    char name[INET6_ADDRSTRLEN];

    if (!settings->trusts_proxy)
        return false;
    peer_print(peer, name);
    if (settings->trusts_proxy(text_of(name), conns->requests->handler_arg))
        return false;
    close(fd);
    proxy_note_refusal(&conns->proxy_pause, uv_now(conns->loop), name, PROXY_UNTRUSTED);
    return true;
}

void conns_accept(struct conns *conns, int fd, const struct sockaddr *peer, bool is_local)
{
    struct conn *conn;
    bool has_room;

    if (!is_local && refuse_untrusted(conns, fd, peer))
        return;
    has_room = make_room(conns);
    conn = take(conns, fd, peer, is_local);
    if (conn && !has_room)
        shed(conns, conn);
    if (conn)
        conn_await(conn);
}
