#include "conn_internal.h"

#include "base/check.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "peer_internal.h"

#include <stdlib.h>
#include <sys/socket.h>

enum { LINGER_MAX_BYTES = 256 * 1024, MS_PER_S = 1000 };

static const enum deadline_class STATE_DEADLINES[] = {
    [CONN_PROXY] = DEADLINE_HEAD, /* from the connection's beginning */
    [CONN_IDLE] = DEADLINE_IDLE,           [CONN_HEAD] = DEADLINE_HEAD,
    [CONN_HANDLING] = DEADLINE_NONE, /* whatever a handler waits for has its own timeout */
    [CONN_BODY] = DEADLINE_BODY,           [CONN_WRITING] = DEADLINE_WRITE,
    [CONN_DELIVERING] = DEADLINE_DELIVERY, [CONN_DISCARDING] = DEADLINE_DISCARD,
    [CONN_LINGERING] = DEADLINE_LINGER,    [CONN_CLOSED] = DEADLINE_NONE,
};

static void conn_enter(struct conn *conn, enum conn_state state)
{
    CHECK(conn->state != CONN_CLOSED);
    conn->state = state;
    deadline_set(&conn->all->deadlines, &conn->deadline, STATE_DEADLINES[state]);
}

/* Separates the connection from its request, which lives on while it is held. */
static void conn_part(struct conn *conn)
{
    struct http_request *request = conn->request;

    if (!request)
        return;
    conn->request = NULL;
    request->conn = NULL;
    request_unpin(request);
}

static void conn_on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct conns *conns = conn->all;

    conn_part(conn);
    output_drop(&conn->output);
    buf_wipe(&conn->stash);
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
    conn_enter(conn, CONN_CLOSED);
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

/* True: the socket has taken everything. False: the rest waits, or the connection has been closed. */
static bool conn_note_output(struct conn *conn, enum output_result result)
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

void conn_send_answer(struct conn *conn, struct text answer, struct text lasting)
{
    bool is_awaited = conn->request->delivery.state == DELIVERY_ASKED;
    enum output_result result =
        is_awaited ? delivery_send(&conn->output, answer) : output_send(&conn->output, answer, lasting);

    if (conn_note_output(conn, result))
        conn_written(conn);
    else if (conn->state != CONN_CLOSED)
        conn_await_writing(conn);
}

/* The socket has room again. */
static void conn_write_on(struct conn *conn)
{
    if (!conn_note_output(conn, output_go_on(&conn->output)))
        return;
    conn_weigh_output(conn);
    if (conn->state == CONN_WRITING)
        conn_written(conn);
}

static void conn_go_on(struct conn *conn)
{
    if (!conn->is_consuming && (conn->stash.len > 0 || conn->is_input_ended))
        ready_add(&conn->all->ready, &conn->in_ready);
}

/* H13: shuts down our side. The peer reads the whole response, then end of file. */
static void conn_linger(struct conn *conn)
{
    if (conn->is_input_ended || shutdown(conn->socket.fd, SHUT_WR) != 0) {
        conn_disconnect(conn);
        return;
    }
    conn_enter(conn, CONN_LINGERING);
    conn_go_on(conn);
}

static void conn_next_request(struct conn *conn)
{
    conn_part(conn);
    conn->scan = (struct head_scan){0};
    conn_enter(conn, CONN_IDLE);
    if (conn->all->answers->are_last)
        conn_linger(conn);
    else
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
            ready_add(&conn->all->ready, &conn->in_ready);
    } else {
        conn_next_request(conn);
    }
}

static void conn_written(struct conn *conn)
{
    struct http_request *request = conn->request;

    if (request->delivery.state != DELIVERY_ASKED) {
        conn_answered(conn);
        return;
    }
    delivery_begin(&conn->all->requests->deliveries, &request->delivery, &conn->output);
    conn_enter(conn, CONN_DELIVERING);
}

/* The callback may close the connection. */
static void conn_delivered(struct conn *conn)
{
    struct http_request *request = conn->request;

    CHECK(conn->state == CONN_DELIVERING);
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

/* Reading. */

static void conn_refuse_proxy(struct conn *conn, enum proxy_error error)
{
    proxy_note_refusal(&conn->all->proxy_pause, uv_now(conn->all->loop), conn->peer, error);
    conn_disconnect(conn);
}

static size_t conn_take_proxy(struct conn *conn, struct text input)
{
    struct proxy_header header;
    enum proxy_error error;

    switch (proxy_read(input, &header, &error)) {
    case PROXY_PARTIAL:
        return 0;
    case PROXY_WHOLE:
        if (header.source.len > 0)
            peer_print_bytes(header.source, conn->peer);
        conn_enter(conn, CONN_IDLE);
        return header.bytes;
    case PROXY_REFUSED:
        conn_refuse_proxy(conn, error);
        return input.len;
    }
    UNREACHABLE();
}

static void conn_create_request(struct conn *conn)
{
    conn->request = request_create(conn->all->requests, conn, conn->peer);
}

void conn_refuse(struct conn *conn, enum http_error error)
{
    if (!conn->request)
        conn_create_request(conn);
    response_refuse(conn->request, error);
}

static void conn_begin_request(struct conn *conn, struct text head)
{
    enum http_error error;

    conn_create_request(conn);
    error = request_read_head(conn->request, head, conn->scan.lines);
    if (error != HTTP_ERROR_NONE) {
        conn_refuse(conn, error);
        return;
    }
    conn_enter(conn, CONN_HANDLING);
    if (text_equal(conn->request->head.target, TEXT("*")))
        response_answer_options(conn->request);
    else
        request_dispatch(conn->request);
}

static size_t conn_take_head(struct conn *conn, struct text input)
{
    size_t bytes = 0;
    enum http_error error;

    switch (head_scan(&conn->scan, input, conn->all->settings, &bytes, &error)) {
    case HEAD_PARTIAL:
        if (conn->state == CONN_IDLE)
            conn_enter(conn, CONN_HEAD);
        return 0;
    case HEAD_WHOLE:
        conn_begin_request(conn, (struct text){input.ptr, bytes});
        return bytes;
    case HEAD_REFUSED:
        conn_refuse(conn, error);
        return input.len;
    }
    UNREACHABLE();
}

static void conn_fail_body(struct conn *conn, enum http_error error)
{
    struct http_request *request = conn->request;
    http_body_done *done = request->body_done;

    /* Answers first, so that the handler that waits finds the request answered. */
    request->body_done = NULL;
    request_pin(request);
    response_refuse(request, error);
    request->body_done = done;
    request_body_ended(request, HTTP_BODY_FAILED);
    request_unpin(request);
}

static void conn_end_body(struct conn *conn)
{
    if (conn->state == CONN_DISCARDING) {
        conn_next_request(conn);
        return;
    }
    conn_enter(conn, CONN_HANDLING);
    request_body_ended(conn->request, HTTP_BODY_OK);
}

/* A client that has begun to send its body without waiting needs no 100 (H10). */
static void conn_send_continue(struct conn *conn, bool has_body_begun)
{
    struct http_request *request = conn->request;

    if (!request->head.expects_continue || request->has_sent_continue || request->parser.is_complete)
        return;
    request->has_sent_continue = true;
    if (!has_body_begun)
        (void)conn_note_output(
            conn, output_send(&conn->output, TEXT("HTTP/1.1 100 Continue\r\n\r\n"), (struct text){NULL, 0}));
}

static size_t conn_take_body(struct conn *conn, struct text input)
{
    struct http_request *request = conn->request;
    bool is_wanted = conn->state == CONN_BODY;
    size_t used;

    if (is_wanted)
        conn_send_continue(conn, input.len > 0);
    if (conn->state == CONN_CLOSED)
        return 0;
    switch (parser_read_body(&request->parser, input, is_wanted ? &request->body : NULL, &used)) {
    case PARSER_MORE:
        if (used > 0)
            conn->body_last_ms = uv_now(conn->all->loop);
        return used;
    case PARSER_DONE:
        conn_end_body(conn);
        return used;
    case PARSER_REFUSED:
        if (is_wanted) {
            conn_fail_body(conn, request->parser.error);
        } else {
            conn_part(conn);
            conn_linger(conn);
        }
        return input.len;
    }
    UNREACHABLE();
}

static size_t conn_drop(struct conn *conn, struct text input)
{
    conn->lingered_bytes += input.len;
    if (conn->lingered_bytes > LINGER_MAX_BYTES)
        conn_disconnect(conn);
    return input.len;
}

/* Takes one step. False: nothing more can be done with this input. */
static bool conn_step(struct conn *conn, struct text input, size_t *ret_used)
{
    enum conn_state state = conn->state;

    *ret_used = 0;
    switch (state) {
    case CONN_IDLE:
    case CONN_HEAD:
        if (input.len > 0)
            *ret_used = conn_take_head(conn, input);
        break;
    case CONN_PROXY:
        if (input.len > 0)
            *ret_used = conn_take_proxy(conn, input);
        break;
    case CONN_BODY:
    case CONN_DISCARDING:
        *ret_used = conn_take_body(conn, input);
        break;
    case CONN_LINGERING:
        *ret_used = conn_drop(conn, input);
        break;
    case CONN_HANDLING:
    case CONN_WRITING:
    case CONN_DELIVERING:
    case CONN_CLOSED:
        return false;
    }
    return *ret_used > 0 || ((state == CONN_BODY || state == CONN_DISCARDING) && conn->state != state);
}

/* Consumes input up to the first request that is not answered at once. Returns the number of bytes consumed. */
static size_t conn_consume(struct conn *conn, struct text input)
{
    size_t total = 0, used;

    conn->is_consuming = true;
    while (conn_step(conn, text_skip(input, total), &used))
        total += used;
    conn->is_consuming = false;
    return total;
}

/* The peer's input has ended: fails whatever still waits for input. A trusted proxy that closes without sending a byte
 * only probed whether the node listens, so nothing is refused. */
static void conn_settle_end(struct conn *conn)
{
    switch (conn->state) {
    case CONN_PROXY:
        if (conn->stash.len > 0)
            conn_refuse_proxy(conn, PROXY_INCOMPLETE);
        else
            conn_disconnect(conn);
        break;
    case CONN_BODY:
        conn_fail_body(conn, HTTP_ERROR_BAD_REQUEST);
        break;
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_DISCARDING:
    case CONN_LINGERING:
        conn_disconnect(conn);
        break;
    case CONN_HANDLING:
    case CONN_WRITING:
    case CONN_DELIVERING:
    case CONN_CLOSED:
        break;
    }
}

static void conn_on_ready(uv_poll_t *poll, int status, int events);

/* Keeps reading while a request is handled, because stopping costs system calls. The stash sets the limit. */
void conn_await(struct conn *conn)
{
    bool wants_input = !conn->is_input_ended && (conn->stash.len < STASH_STOP_BYTES || conn->state == CONN_HEAD);

    if (conn->state != CONN_CLOSED &&
        socket_await(&conn->socket, wants_input, !list_empty(&conn->output.waiting), conn_on_ready) != 0)
        conn_disconnect(conn);
}

/* The memory held while more input is expected. */
static size_t held_input(const struct conn *conn)
{
    const struct http_request *request = conn->request;

    if (conn->state != CONN_BODY && conn->state != CONN_DISCARDING)
        return conn->stash.capacity;
    return conn->stash.capacity + sizeof *request + request->head_bytes.len + request->body.capacity;
}

static void conn_settle(struct conn *conn)
{
    if (conn->stash.ptr && conn->stash.len == 0) {
        size_t max_bytes = conn->stash.max;

        buf_wipe(&conn->stash);
        buf_init(&conn->stash, max_bytes);
    }
    if (conn->is_input_ended)
        conn_settle_end(conn);
    if (conn->state != CONN_CLOSED)
        burden_set(&conn->all->burdens, &conn->load, BURDEN_INPUT, held_input(conn));
    conn_await(conn);
}

static void conn_consume_stash(struct conn *conn)
{
    buf_consume(&conn->stash, conn_consume(conn, buf_text(&conn->stash)));
}

/* Call it last in a callback of the loop, because it may answer requests of other connections. */
static void conn_offer_slice(const struct conn *conn)
{
    struct turn *turn = conn->all->settings->turn;

    if (turn)
        turn_offer(turn);
}

/* Goes on with stashed input. */
void conn_resume(struct list *in_ready)
{
    struct conn *conn = LIST_ENTRY(in_ready, struct conn, in_ready);

    conn_consume_stash(conn);
    conn_settle(conn);
    conn_offer_slice(conn);
}

static void conn_receive(struct conn *conn, struct text input)
{
    /* A client that sends more has probably read the response: do not wait for the tick. */
    if (conn->state == CONN_DELIVERING)
        delivery_poll(&conn->all->requests->deliveries, &conn->request->delivery);
    if (conn->stash.len > 0) {
        buf_append_text(&conn->stash, input);
        conn_consume_stash(conn);
    } else {
        buf_append_text(&conn->stash, text_skip(input, conn_consume(conn, input)));
    }
    CHECK(!conn->stash.failed);
}

static void conn_end_input(struct conn *conn)
{
    conn->is_input_ended = true;
    conn_consume_stash(conn); /* consumes what came before the end, even if that was scheduled for the next turn */
}

static void conn_on_input(struct conn *conn, int events)
{
    char *input = conn->all->read_buffer;
    ssize_t bytes = socket_receive(&conn->socket, events, input, READ_BUFFER_BYTES);

    if (bytes == UV_EAGAIN)
        return;
    if (bytes == 0)
        conn_end_input(conn);
    else if (bytes < 0)
        conn_disconnect(conn);
    else
        conn_receive(conn, (struct text){input, (size_t)bytes});
    if (bytes > 0)
        secure_wipe(input, (size_t)bytes);
    conn_settle(conn);
}

static void conn_on_ready(uv_poll_t *poll, int status, int events)
{
    struct conn *conn = poll->data;

    if (status != 0) {
        conn_disconnect(conn);
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT))
        conn_on_input(conn, events);
    if (events & UV_WRITABLE && conn->state != CONN_CLOSED) {
        conn_write_on(conn);
        conn_await(conn);
    }
    conn_offer_slice(conn);
}

/* Requests call this. */

void conn_want_body(struct conn *conn)
{
    CHECK(conn->state == CONN_HANDLING);
    conn->body_begun_ms = conn->body_last_ms = uv_now(conn->all->loop);
    conn_enter(conn, CONN_BODY);
    if (!conn->is_consuming)
        ready_add(&conn->all->ready, &conn->in_ready);
}

/* Deadlines. */

/* A credential is checked before the body arrives. A slow sender keeps that verdict alive and occupies our memory. So
 * there are limits on the pause between two bytes, on the whole body, and, once it has taken longer than one such
 * pause, on its average rate. */
static bool body_is_late(const struct conn *conn)
{
    const struct http_settings *settings = conn->all->settings;
    uint64_t now_ms = uv_now(conn->all->loop), taken_ms = now_ms - conn->body_begun_ms;
    uint64_t due_bytes = taken_ms * (uint64_t)settings->body_min_bytes_per_s / MS_PER_S;

    if (now_ms - conn->body_last_ms >= (uint64_t)settings->body_timeout_ms ||
        taken_ms >= (uint64_t)settings->body_total_timeout_ms)
        return true;
    return taken_ms >= (uint64_t)settings->body_timeout_ms && conn->request->parser.body_bytes < due_bytes;
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
    size_t least = (size_t)(settings->write_timeout_ms * settings->write_min_bytes_per_s / MS_PER_S);

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
    case CONN_CLOSED:
        UNREACHABLE();
    }
    conn_settle(conn);
}

/* Beginning. */

void conn_begin(struct conn *conn, struct conns *conns)
{
    size_t head_max_bytes = (size_t)conns->settings->head_max_bytes;
    size_t stash_max_bytes = head_max_bytes > STASH_STOP_BYTES ? head_max_bytes : STASH_STOP_BYTES;

    conn->socket.poll.data = conn;
    conn->all = conns;
    buf_init(&conn->stash, stash_max_bytes + READ_BUFFER_BYTES);
    output_init(&conn->output, &conn->socket);
    deadline_init(&conn->deadline);
    load_init(&conn->load, conn->peer);
    list_init(&conn->in_ready);
    list_append(&conns->all, &conn->in_all);
    conns->count++;
    metric_add(conns->settings->is_internal ? METRIC_CONNECTIONS_INTERNAL : METRIC_CONNECTIONS_PUBLIC, 1);
    metric_add(conns->settings->is_internal ? METRIC_ACCEPTED_INTERNAL : METRIC_ACCEPTED_PUBLIC, 1);
    conn_enter(conn, conns->settings->trusts_proxy ? CONN_PROXY : CONN_IDLE);
}
