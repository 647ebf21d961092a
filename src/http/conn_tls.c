/* A connection's TLS: its handshake, then records instead of bytes. Everything that a read yields is decrypted at once,
 * so nothing waits in the session that no event would report. */
#include "conn_parts_internal.h"

#include "base/check.h"
#include "base/metrics.h"
#include "base/secure.h"

enum {
    /* Records of a response and the session's own beside it. */
    WIRE_MAX_BYTES = REPLY_MAX_BYTES + REPLY_MAX_BYTES / 16,
    /* Wire memory larger than this is freed after use. */
    WIRE_KEPT_BYTES = 256 * 1024,
    /* OpenSSL's, from the first flight to the last; measured. */
    HANDSHAKE_BYTES = 32 * 1024,
};

void conn_init_tls(struct conns *conns)
{
    /* A read adds up to a record at a time. */
    buf_init(&conns->plain, stash_max_bytes(conns->settings) + 2 * (size_t)TLS_RECORD_BYTES);
    buf_init(&conns->wire, WIRE_MAX_BYTES);
}

void conn_set_tls(struct conns *conns, struct tls_context *tls)
{
    struct tls_context *before = conns->tls;

    conns->tls = tls ? tls_context_hold(tls) : NULL;
    tls_context_release(before);
}

void conn_finish_tls(struct conns *conns)
{
    conn_set_tls(conns, NULL);
    buf_wipe(&conns->plain);
    buf_finish(&conns->wire);
}

/* Empty, whatever it was lent for before. */
static struct buf *take_wire(struct conns *conns)
{
    if (conns->wire.capacity > WIRE_KEPT_BYTES) {
        buf_finish(&conns->wire);
        buf_init(&conns->wire, WIRE_MAX_BYTES);
    }
    buf_clear(&conns->wire);
    return &conns->wire;
}

bool conn_seal(struct conn *conn, struct text *bytes)
{
    struct buf *wire = take_wire(conn->all);

    if (!tls_send(conn->tls, *bytes, wire))
        return false;
    *bytes = buf_text(wire);
    return true;
}

/* Sends what the session has to say itself: handshakes, alerts. */
static void send_wire(struct conn *conn)
{
    const struct text bytes = buf_text(&conn->all->wire);

    if (bytes.len > 0 && conn->state != CONN_CLOSED)
        (void)conn_note_output(conn, output_send(&conn->output, bytes, (struct text){NULL, 0}));
}

void conn_end_tls(struct conn *conn)
{
    tls_end(conn->tls, take_wire(conn->all));
    send_wire(conn);
}

void conn_leave_tls(struct conn *conn)
{
    struct buf *wire = take_wire(conn->all);

    tls_end(conn->tls, wire);
    if (wire->len > 0 && list_empty(&conn->output.waiting))
        (void)!socket_send(&conn->socket, buf_text(wire));
}

enum tls_peer conn_peer(const struct conn *conn)
{
    return conn->tls ? tls_session_peer(conn->tls, conn->all->tls) : TLS_PEER_UNKNOWN;
}

bool conn_has_lost_right(const struct conn *conn)
{
    return conn_peer(conn) == TLS_PEER_ENDED;
}

size_t conn_held_by_tls(const struct conn *conn)
{
    return conn->state == CONN_HANDSHAKE ? HANDSHAKE_BYTES : tls_session_held_bytes(conn->tls);
}

/* Takes the plaintext that a read has yielded, then the end, if it came with it. */
static void take_plain(struct conn *conn, enum tls_state state)
{
    struct buf *plain = &conn->all->plain;

    ALL_REQUIRE(plain->len == 0 || conn->state != CONN_HANDSHAKE); /* nobody is heard before he is known */
    if (plain->len > 0 && conn->state != CONN_CLOSED)
        conn_receive(conn, buf_text(plain));
    secure_wipe(plain->ptr, plain->len);
    buf_clear(plain);
    if (state == TLS_ENDED && conn->state != CONN_CLOSED)
        conn_end_input(conn);
}

/* An end of the peer's TCP stream without close_notify ends the input just the same: every request says where it ends,
 * so one that was truncated is never taken for a whole one (RFC 9112, section 9.8). */
void conn_receive_records(struct conn *conn, struct text input)
{
    enum tls_state state;

    if (conn->state == CONN_HANDSHAKE || conn->state == CONN_LINGERING) {
        conn_receive(conn, input);
        return;
    }
    state = tls_receive(conn->tls, input, &conn->all->plain, take_wire(conn->all));
    send_wire(conn);
    if (state == TLS_FAILED && conn->state != CONN_CLOSED)
        conn_disconnect(conn);
    take_plain(conn, state);
}

/* Handshakes. */

static void note_refusal(struct conns *conns)
{
    metric_add(METRIC_TLS_REFUSED, 1);
    if (log_pause_is_over(&conns->handshakes_max_pause, uv_now(conns->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, "tls-handshakes-max is reached: connections are closed before their handshake is complete",
            log_int("handshakes", (int64_t)conns->handshakes.count));
}

void conn_begin_tls(struct conn *conn)
{
    struct conns *conns = conn->all;
    struct handshake *longest = handshakes_to_close(&conns->handshakes);

    if (longest) {
        note_refusal(conns);
        conn_disconnect(LIST_ENTRY(longest, struct conn, handshake));
    }
    conn_enter(conn, CONN_HANDSHAKE);
    if (handshake_begin(&conns->handshakes, &conn->handshake))
        return;
    note_refusal(conns);
    conn_disconnect(conn);
}

static void note_failure(struct conn *conn, const char *why)
{
    struct conns *conns = conn->all;

    metric_add(METRIC_TLS_FAILED, 1);
    if (log_pause_is_over(&conns->handshake_pause, uv_now(conns->loop), COMPLAINT_INTERVAL_MS))
        LOG(LOG_INFO, "a TLS handshake failed", log_str("peer", conn->peer), log_str("why", why),
            log_int("suppressed", conns->handshake_pause.suppressed));
}

/* A peer that closes without sending a byte only probed whether the node listens. */
void conn_break_off_tls(struct conn *conn)
{
    if (conn->tls || conn->stash.len > 0)
        note_failure(conn, "the peer closed the connection");
    conn_disconnect(conn);
}

/* Every handshake begins with the byte 22 (RFC 8446, section 5.1), every method with a letter. */
static bool is_plain_http(struct text input)
{
    return input.ptr[0] >= 'A' && input.ptr[0] <= 'Z';
}

static void refuse_plain_http(struct conn *conn)
{
    note_failure(conn, "plain HTTP");
    handshake_end(&conn->all->handshakes, &conn->handshake);
    conn_enter(conn, CONN_HANDLING);
    conn_refuse(conn, HTTP_ERROR_TLS_REQUIRED);
}

static void note_success(const struct conn *conn)
{
    metric_add(tls_session_is_resumed(conn->tls) ? METRIC_TLS_RESUMED : METRIC_TLS_FULL, 1);
}

static void settle_handshake(struct conn *conn, enum tls_state state)
{
    if (state != TLS_HANDSHAKING)
        handshake_end(&conn->all->handshakes, &conn->handshake);
    switch (state) {
    case TLS_HANDSHAKING:
        handshake_await(&conn->all->handshakes, &conn->handshake);
        break;
    case TLS_OPEN:
    case TLS_ENDED:
        note_success(conn);
        conn_enter(conn, CONN_IDLE);
        break;
    case TLS_FAILED:
        note_failure(conn, tls_session_reason(conn->tls));
        conn_linger(conn); /* the peer reads the alert */
        break;
    }
}

static void advance(struct conn *conn)
{
    struct buf input = conn->stash;
    enum tls_state state;

    buf_init(&conn->stash, input.max);
    if (!conn->tls)
        conn->tls = tls_session_accept(conn->all->tls);
    state = tls_receive(conn->tls, buf_text(&input), &conn->all->plain, take_wire(conn->all));
    buf_wipe(&input);
    send_wire(conn);
    if (conn->state == CONN_CLOSED)
        note_failure(conn, "the peer reset the connection");
    else
        settle_handshake(conn, state);
    take_plain(conn, state);
}

/* The session is made here and not earlier, so that a connection that sends nothing costs none. */
void conn_shake_hands(struct handshake *handshake)
{
    struct conn *conn = LIST_ENTRY(handshake, struct conn, handshake);

    if (!conn->tls && is_plain_http(buf_text(&conn->stash)))
        refuse_plain_http(conn);
    else
        advance(conn);
    conn_settle(conn);
    conn_offer_slice(conn);
}
