#include "conn_parts_internal.h"

#include "base/check.h"
#include "base/machine.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <sys/socket.h>

enum { MS_PER_S = 1000 };

#define CLOSED MACHINE_TO(CONN_CLOSED)
/* All of the response is written. Beside these, CONN_IDLE, but not out of CONN_BODY, of which more may come: it would
 * be read as a request. */
#define ANSWERED (MACHINE_TO(CONN_DISCARDING) | MACHINE_TO(CONN_LINGERING) | CLOSED)
/* Part of it is, or all. */
#define ANSWERING (ANSWERED | MACHINE_TO(CONN_STREAMING) | MACHINE_TO(CONN_WRITING) | MACHINE_TO(CONN_DELIVERING))
#define REFUSED (MACHINE_TO(CONN_WRITING) | MACHINE_TO(CONN_LINGERING))

/* One table, because requests pass here, and each table costs an address. */
static const struct {
    struct machine machine;
    enum deadline_class deadlines[CONN_CLOSED + 1];
} STATES = {
    .machine =
        {
            .name = "connection",
            .count = CONN_CLOSED + 1,
            MACHINE_ROW(CONN_IDLE, MACHINE_TO(CONN_PROXY) | MACHINE_TO(CONN_HANDSHAKE) | MACHINE_TO(CONN_IDLE) |
                                       MACHINE_TO(CONN_HEAD) | MACHINE_TO(CONN_HANDLING) | REFUSED | CLOSED),
            MACHINE_ROW(CONN_PROXY, MACHINE_TO(CONN_HANDSHAKE) | MACHINE_TO(CONN_IDLE) | REFUSED | CLOSED),
            MACHINE_ROW(CONN_HANDSHAKE,
                        MACHINE_TO(CONN_IDLE) | MACHINE_TO(CONN_HANDLING) | MACHINE_TO(CONN_LINGERING) | CLOSED),
            MACHINE_ROW(CONN_HEAD, MACHINE_TO(CONN_HANDLING) | REFUSED | CLOSED),
            MACHINE_ROW(CONN_HANDLING, MACHINE_TO(CONN_BODY) | MACHINE_TO(CONN_IDLE) | ANSWERING),
            MACHINE_ROW(CONN_BODY, MACHINE_TO(CONN_BODY) | MACHINE_TO(CONN_HANDLING) | ANSWERING),
            MACHINE_ROW(CONN_STREAMING, MACHINE_TO(CONN_IDLE) | ANSWERING),
            MACHINE_ROW(CONN_WRITING, MACHINE_TO(CONN_IDLE) | ANSWERING),
            MACHINE_ROW(CONN_DELIVERING, MACHINE_TO(CONN_IDLE) | ANSWERED),
            MACHINE_ROW(CONN_DISCARDING, MACHINE_TO(CONN_IDLE) | MACHINE_TO(CONN_LINGERING) | CLOSED),
            MACHINE_ROW(CONN_LINGERING, CLOSED),
            MACHINE_ROW(CONN_CLOSED, 0),
        },
    .deadlines =
        {
            [CONN_PROXY] = DEADLINE_HEAD, /* from the connection's beginning */
            [CONN_HANDSHAKE] = DEADLINE_HANDSHAKE,
            [CONN_IDLE] = DEADLINE_IDLE,
            [CONN_HEAD] = DEADLINE_HEAD,
            [CONN_HANDLING] = DEADLINE_NONE,  /* whatever a handler waits for has its own timeout */
            [CONN_STREAMING] = DEADLINE_NONE, /* likewise */
            [CONN_BODY] = DEADLINE_BODY,
            [CONN_WRITING] = DEADLINE_WRITE,
            [CONN_DELIVERING] = DEADLINE_DELIVERY,
            [CONN_DISCARDING] = DEADLINE_DISCARD,
            [CONN_LINGERING] = DEADLINE_LINGER,
            [CONN_CLOSED] = DEADLINE_NONE,
        },
};

/* A forbidden move is made all the same, so that whoever asked for it finds what he expects, but the peer neither gets
 * nor says anything more, and what it has said waits unread. False: the connection is closed, and stays so. */
COLD static bool conn_move_oddly(struct conn *conn, enum conn_state state)
{
    (void)!machine_refuse(&STATES.machine, conn->state, state);
    if (conn->state == CONN_CLOSED)
        return false;
    conn->is_odd = true;
    (void)shutdown(conn->socket.fd, SHUT_RDWR);
    return true;
}

void conn_enter(struct conn *conn, enum conn_state state)
{
    if (!machine_has(&STATES.machine, conn->state, state) && !conn_move_oddly(conn, state))
        return;
    conn->state = state;
    deadline_set(&conn->all->deadlines, &conn->deadline, STATES.deadlines[state]);
}

/* Bytes that have arrived may still be unread. A part of a handshake or of a PROXY header is no request. */
static bool has_input(const struct conn *conn)
{
    char byte;

    return (conn->state == CONN_IDLE && conn->stash.len > 0) ||
           recv(conn->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool conn_is_quiet_since(const struct conn *conn, uint64_t ms)
{
    return (conn->state == CONN_IDLE || conn->state == CONN_PROXY || conn->state == CONN_HANDSHAKE) &&
           deadline_began_ms(&conn->all->deadlines, &conn->deadline, STATES.deadlines[conn->state]) <= ms &&
           !has_input(conn);
}

void conn_part(struct conn *conn)
{
    struct http_request *request = conn->request;

    if (!request)
        return;
    ALL_INVARIANT(request->conn == conn);
    conn->request = NULL;
    request->conn = NULL;
    request_unpin(request);
}

static void conn_on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct conns *conns = conn->all;

    INVARIANT(conn->state == CONN_CLOSED && conns->count > 0);
    ENSURE(!conn->handshake.is_begun); /* its place is given back */
    list_remove(&conn->in_ready);
    conn_part(conn);
    output_drop(&conn->output);
    buf_wipe(&conn->stash);
    tls_session_free(conn->tls);
    list_remove(&conn->in_all);
    metric_add(conns->settings->is_internal ? METRIC_CONNECTIONS_INTERNAL : METRIC_CONNECTIONS_PUBLIC, -1);
    free(conn);
    if (--conns->count == 0)
        conns->none_left(conns->arg);
}

void conn_disconnect(struct conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    /* Not before a request is lost: what the peer has not acknowledged may be its response. */
    if (conn->tls && !conn->request)
        conn_leave_tls(conn);
    conn_enter(conn, CONN_CLOSED);
    handshake_end(&conn->all->handshakes, &conn->handshake);
    cork_forget(&conn->all->answers->cork, conn);
    burden_forget(&conn->all->burdens, &conn->load);
    list_remove(&conn->in_ready);
    if (conn->request)
        request_lost(conn->request);
    socket_close(&conn->socket, conn_on_closed);
}

void conn_cut(struct load *load)
{
    conn_disconnect(LIST_ENTRY(load, struct conn, load));
}

/* Writing. */

static void conn_written(struct conn *conn);

/* The request stays in memory while its response waits, so it counts too. */
static void conn_weigh_output(struct conn *conn)
{
    const struct output *output = &conn->output;
    size_t bytes = list_empty(&output->waiting) ? 0 : output->memory_bytes + sizeof *conn->request;

    burden_set(&conn->all->burdens, &conn->load, BURDEN_OUTPUT, bytes);
}

bool conn_note_output(struct conn *conn, enum output_result result)
{
    switch (result) {
    case OUTPUT_TAKEN:
        return true;
    case OUTPUT_WAITING:
        conn_weigh_output(conn);
        conn_await(conn);
        return false;
    case OUTPUT_FAILED:
        conn_disconnect(conn);
        return false;
    }
    UNREACHABLE();
}

static void conn_await_writing(struct conn *conn)
{
    conn->unwritten_bytes = conn->output.waiting_bytes;
    conn_enter(conn, CONN_WRITING);
}

/* Under TLS, the socket gets records, which are copied as far as they have to wait: they do not last. */
static enum output_result conn_output(struct conn *conn, struct text bytes, struct text lasting, bool is_awaited)
{
    if (conn->tls) {
        lasting = (struct text){NULL, 0};
        if (!conn_seal(conn, &bytes))
            return OUTPUT_FAILED;
    }
    return is_awaited ? delivery_send(&conn->output, bytes) : output_send(&conn->output, bytes, lasting);
}

void conn_send_continue_line(struct conn *conn)
{
    static const struct text LINE = {"HTTP/1.1 100 Continue\r\n\r\n", 25};

    (void)conn_note_output(conn, conn_output(conn, LINE, (struct text){NULL, 0}, false));
}

void conn_send_answer(struct conn *conn, struct text answer, struct text lasting)
{
    bool is_awaited = conn->request->delivery.state == DELIVERY_ASKED;

    ALL_REQUIRE(conn->request->conn == conn && conn->request->is_replied);
    if (conn->request->stream.is_open && conn_has_lost_right(conn)) {
        conn_disconnect(conn);
        return;
    }
    if (conn_note_output(conn, conn_output(conn, answer, lasting, is_awaited)))
        conn_written(conn);
    else if (conn->state != CONN_CLOSED)
        conn_await_writing(conn);
}

/* What waits is sent first. */
static void conn_shut(struct conn *conn)
{
    if (conn->state != CONN_CLOSED && list_empty(&conn->output.waiting) && shutdown(conn->socket.fd, SHUT_WR) != 0)
        conn_disconnect(conn);
}

void conn_write_on(struct conn *conn)
{
    if (!conn_note_output(conn, output_go_on(&conn->output)))
        return;
    conn_weigh_output(conn);
    if (conn->state == CONN_WRITING)
        conn_written(conn);
    else if (conn->state == CONN_LINGERING)
        conn_shut(conn);
}

static void conn_go_on(struct conn *conn)
{
    if (!conn->is_consuming && (conn->stash.len > 0 || conn->is_input_ended))
        next_turn_add(&conn->all->ready, &conn->in_ready);
}

void conn_linger(struct conn *conn)
{
    if (conn->is_input_ended) {
        conn_disconnect(conn);
        return;
    }
    if (conn->tls)
        conn_end_tls(conn);
    conn_shut(conn);
    if (conn->state == CONN_CLOSED)
        return;
    conn_enter(conn, CONN_LINGERING);
    conn_go_on(conn);
}

void conn_next_request(struct conn *conn)
{
    ALL_REQUIRE(conn->request->parser.is_complete);
    conn_part(conn);
    conn->scan = (struct head_scan){0};
    conn_enter(conn, CONN_IDLE);
    conn_go_on(conn);
}

static void conn_answered(struct conn *conn)
{
    if (conn->request->must_close) {
        conn_part(conn);
        conn_linger(conn);
    } else if (!conn->request->parser.is_complete) {
        conn_enter(conn, CONN_DISCARDING);
        if (!conn->is_consuming)
            next_turn_add(&conn->all->ready, &conn->in_ready);
    } else {
        conn_next_request(conn);
    }
}

/* The handler is told in the next turn, so that it never is while it sends. */
static void conn_piece_written(struct conn *conn)
{
    conn_enter(conn, CONN_STREAMING);
    if (conn->request->stream.drained)
        next_turn_add(&conn->all->ready, &conn->in_ready);
}

static void conn_written(struct conn *conn)
{
    struct http_request *request = conn->request;

    if (request->stream.is_open) {
        conn_piece_written(conn);
        return;
    }
    if (request->delivery.state != DELIVERY_ASKED) {
        conn_answered(conn);
        return;
    }
    delivery_begin(&conn->all->requests->deliveries, &request->delivery, &conn->output);
    conn_enter(conn, CONN_DELIVERING);
}

void conn_end_stream(struct conn *conn)
{
    if (conn->state == CONN_STREAMING)
        conn_written(conn);
}

void conn_reset(struct conn *conn)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(conn->socket.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    conn_disconnect(conn);
}

/* The callback may close the connection. */
static void conn_delivered(struct conn *conn)
{
    struct http_request *request = conn->request;

    REQUIRE(conn->state == CONN_DELIVERING);
    request_pin(request);
    request_end_delivery(request, true);
    if (!request->is_gone)
        conn_answered(conn);
    request_unpin(request);
}

void conn_settle_delivery(struct delivery *delivery, bool is_delivered)
{
    struct http_request *request = LIST_ENTRY(delivery, struct http_request, delivery);

    if (request->is_gone)
        request_end_lost(request, is_delivered);
    else if (is_delivered)
        conn_delivered(request->conn);
    else
        conn_disconnect(request->conn);
}
/* Requests call this. */

void conn_want_body(struct conn *conn)
{
    REQUIRE(conn->state == CONN_HANDLING);
    conn->body_begun_ms = conn->body_last_ms = uv_now(conn->all->loop);
    conn_enter(conn, CONN_BODY);
    if (!conn->is_consuming)
        next_turn_add(&conn->all->ready, &conn->in_ready);
}

/* Deadlines. */

/* A credential is checked before the body arrives. A slow sender keeps that verdict alive and occupies our memory. So
 * there are limits on the pause between two bytes, on the whole body, and, once it has taken longer than one such
 * pause, on its average rate. */
static bool body_is_late(const struct conn *conn)
{
    const struct http_settings *settings = conn->all->settings;
    uint64_t now_ms = uv_now(conn->all->loop), taken_ms = now_ms - conn->body_begun_ms;
    uint64_t due_bytes = taken_ms * (uint64_t)settings->limits.body_min_bytes_per_s / MS_PER_S;

    if (now_ms - conn->body_last_ms >= (uint64_t)settings->limits.body_timeout_ms ||
        taken_ms >= (uint64_t)settings->limits.body_total_timeout_ms)
        return true;
    return taken_ms >= (uint64_t)settings->limits.body_timeout_ms && conn->request->parser.body_bytes < due_bytes;
}

static void conn_expire_body(struct conn *conn)
{
    if (body_is_late(conn))
        conn_fail_body(conn, HTTP_ERROR_REQUEST_TIMEOUT);
    else
        conn_enter(conn, CONN_BODY);
}

static void conn_expire_writing(struct conn *conn)
{
    const struct http_settings *settings = conn->all->settings;
    size_t least = (size_t)(settings->limits.write_timeout_ms * settings->limits.write_min_bytes_per_s / MS_PER_S);

    if (conn->unwritten_bytes - conn->output.waiting_bytes > least)
        conn_await_writing(conn);
    else
        conn_disconnect(conn);
}

void conn_expire(struct deadline *deadline)
{
    struct conn *conn = LIST_ENTRY(deadline, struct conn, deadline);

    switch (conn->state) {
    case CONN_PROXY:
        conn_refuse_proxy(conn, conn->stash.len > 0 ? PROXY_INCOMPLETE : PROXY_MISSING);
        break;
    case CONN_HANDSHAKE:
        metric_add(METRIC_TLS_TIMEOUT, 1);
        conn_disconnect(conn);
        break;
    case CONN_HEAD:
        conn_refuse(conn, HTTP_ERROR_REQUEST_TIMEOUT);
        break;
    case CONN_BODY:
        conn_expire_body(conn);
        break;
    case CONN_WRITING:
        conn_expire_writing(conn);
        break;
    case CONN_IDLE:
    case CONN_DELIVERING:
    case CONN_DISCARDING:
    case CONN_LINGERING:
        conn_disconnect(conn);
        break;
    case CONN_HANDLING:
    case CONN_STREAMING:
    case CONN_CLOSED:
        UNREACHABLE();
    }
    conn_settle(conn);
}

/* Beginning. */

void conn_begin_talking(struct conn *conn)
{
    if (conn->all->tls && !conn->is_local)
        conn_begin_tls(conn);
    else
        conn_enter(conn, CONN_IDLE);
}

/* What is stashed when reading stops, and all that one read may add: under TLS, a record that had arrived in part, too.
 */
size_t stash_max_bytes(const struct http_settings *settings)
{
    size_t head_max_bytes = (size_t)settings->limits.head_max_bytes;

    return (head_max_bytes > STASH_STOP_BYTES ? head_max_bytes : STASH_STOP_BYTES) + READ_BUFFER_BYTES +
           TLS_RECORD_BYTES;
}

void conn_begin(struct conn *conn, struct conns *conns)
{
    REQUIRE(!conn->all && !conn->request);
    conn->socket.poll.data = conn;
    conn->all = conns;
    buf_init(&conn->stash, stash_max_bytes(conns->settings));
    output_init(&conn->output, &conn->socket);
    deadline_init(&conn->deadline);
    load_init(&conn->load, conn->peer);
    list_init(&conn->in_ready);
    handshake_init(&conn->handshake);
    list_append(&conns->all, &conn->in_all);
    conns->count++;
    metric_add(conns->settings->is_internal ? METRIC_CONNECTIONS_INTERNAL : METRIC_CONNECTIONS_PUBLIC, 1);
    metric_add(conns->settings->is_internal ? METRIC_ACCEPTED_INTERNAL : METRIC_ACCEPTED_PUBLIC, 1);
    if (conns->settings->trusts_proxy && !conn->is_local)
        conn_enter(conn, CONN_PROXY);
    else
        conn_begin_talking(conn);
}
