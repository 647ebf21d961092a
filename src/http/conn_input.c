/* What a connection does with its input: reads, steps from state to state, stashes what must wait. */
#include "conn_parts_internal.h"

#include "base/check.h"
#include "base/secure.h"
#include "peer_internal.h"

enum { LINGER_MAX_BYTES = 256 * 1024 };

void conn_refuse_proxy(struct conn *conn, enum proxy_error error)
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
        conn_begin_talking(conn);
        return header.bytes;
    case PROXY_REFUSED:
        conn_refuse_proxy(conn, error);
        return input.len;
    }
    UNREACHABLE();
}

static void conn_create_request(struct conn *conn, enum tls_peer peer)
{
    ALL_REQUIRE(!conn->request); /* one at a time */
    conn->request = request_create(conn->all->requests, conn, conn->peer);
    conn->request->has_whole_input = conn->is_ending;
    conn->request->has_verified_peer = conn->is_local || peer == TLS_PEER_VERIFIED;
    if (peer == TLS_PEER_VERIFIED)
        conn->request->client_name = tls_session_peer_name(conn->tls);
}

void conn_refuse(struct conn *conn, enum http_error error)
{
    if (!conn->request)
        conn_create_request(conn, conn_peer(conn));
    response_refuse(conn->request, error);
}

static void conn_begin_request(struct conn *conn, struct text head)
{
    const enum tls_peer peer = conn_peer(conn);
    enum http_error error;

    if (peer == TLS_PEER_ENDED) {
        conn_disconnect(conn);
        return;
    }
    conn_create_request(conn, peer);
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

void conn_fail_body(struct conn *conn, enum http_error error)
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

/* The memory held while more input is expected, or while a body that has come waits for its answer. */
static size_t held_input(const struct conn *conn)
{
    const struct http_request *request = conn->request;

    size_t bytes = conn->stash.capacity + (conn->tls ? conn_held_by_tls(conn) : 0);

    if (conn->state != CONN_BODY && conn->state != CONN_DISCARDING && !conn->holds_body)
        return bytes;
    return bytes + sizeof *request + request->head_bytes.len + request->body.capacity;
}

static void conn_weigh_input(struct conn *conn)
{
    burden_set(&conn->all->burdens, &conn->load, BURDEN_INPUT, held_input(conn));
}

static void conn_let_go_of_body(void *arg, int status)
{
    struct conn *conn = arg;

    (void)status;
    conn->holds_body = false;
    conn_weigh_input(conn);
}

/* Many bodies may wait for their handlers, which may wait for others. */
static void conn_hold_body(struct conn *conn)
{
    conn->holds_body = true;
    http_response_on_replied(conn->request, conn_let_go_of_body, conn);
}

static void conn_end_body(struct conn *conn)
{
    ALL_REQUIRE(conn->request->parser.is_complete);
    if (conn->state == CONN_DISCARDING) {
        conn_next_request(conn);
        return;
    }
    conn_enter(conn, CONN_HANDLING);
    conn_hold_body(conn);
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
        conn_send_continue_line(conn);
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
    case CONN_HANDSHAKE:
    case CONN_HANDLING:
    case CONN_STREAMING:
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
    while (!conn->is_odd && conn_step(conn, text_skip(input, total), &used)) {
        total += used;
        ALL_ENSURE(total <= input.len);
    }
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
    case CONN_HANDSHAKE:
        conn_break_off_tls(conn);
        break;
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_DISCARDING:
    case CONN_LINGERING:
        conn_disconnect(conn);
        break;
    case CONN_HANDLING:
    case CONN_STREAMING:
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

void conn_settle(struct conn *conn)
{
    if (conn->stash.ptr && conn->stash.len == 0) {
        size_t max_bytes = conn->stash.max;

        buf_wipe(&conn->stash);
        buf_init(&conn->stash, max_bytes);
    }
    if (conn->is_input_ended)
        conn_settle_end(conn);
    else if (conn->state == CONN_HANDSHAKE && conn->stash.len > 0)
        handshake_queue(&conn->all->handshakes, &conn->handshake);
    if (conn->state != CONN_CLOSED)
        conn_weigh_input(conn);
    conn_await(conn);
}

static void conn_consume_stash(struct conn *conn)
{
    buf_consume(&conn->stash, conn_consume(conn, buf_text(&conn->stash)));
}

void conn_offer_slice(const struct conn *conn)
{
    struct turn *turn = conn->all->settings->turn;

    if (turn)
        turn_offer(turn);
}

/* Goes on with a stream, and with stashed input. */
void conn_resume(struct list *in_ready)
{
    struct conn *conn = LIST_ENTRY(in_ready, struct conn, in_ready);

    if (conn->state == CONN_STREAMING)
        request_stream_drained(conn->request);
    conn_consume_stash(conn);
    conn_settle(conn);
    conn_offer_slice(conn);
}

void conn_receive(struct conn *conn, struct text input)
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

static void conn_note_end(struct conn *conn)
{
    conn->is_ending = true;
    if (conn->request)
        conn->request->has_whole_input = true;
}

void conn_end_input(struct conn *conn)
{
    conn->is_input_ended = true;
    conn_note_end(conn);
    conn_consume_stash(conn); /* consumes what came before the end, even if that was scheduled for the next turn */
}

/* The socket has failed. */
static void conn_break_off(struct conn *conn)
{
    if (conn->state == CONN_HANDSHAKE)
        conn_break_off_tls(conn);
    else
        conn_disconnect(conn);
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
        conn_break_off(conn);
    else if (conn->tls)
        conn_receive_records(conn, (struct text){input, (size_t)bytes});
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
        conn_break_off(conn);
        return;
    }
    if (events & UV_DISCONNECT)
        conn_note_end(conn);
    if (events & (UV_READABLE | UV_DISCONNECT))
        conn_on_input(conn, events);
    if (events & UV_WRITABLE && conn->state != CONN_CLOSED) {
        conn_write_on(conn);
        conn_await(conn);
    }
    conn_offer_slice(conn);
}
