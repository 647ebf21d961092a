#include "wire.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "reader.h"
#include "redis/tls.h"
#include <stdlib.h>

enum {
    INPUT_BYTES = 32 * 1024,
    OUTPUT_MAX_BYTES = 16 * 1024 * 1024, /* seconds of full load; a Redis further behind counts as unreachable */
    OUTPUT_KEPT_BYTES = 256 * 1024,      /* a larger buffer, left by a burst, is freed */
    RECORDS_MAX =
        OUTPUT_MAX_BYTES / TLS_RECORD_BYTES + 4, /* the whole output, and what the handshake and alerts need */
    SEALED_MAX_BYTES = RECORDS_MAX * (TLS_RECORD_BYTES + TLS_RECORD_OVERHEAD_BYTES),
    OPENED_MAX_BYTES = INPUT_BYTES + 2 * TLS_RECORD_BYTES,
    TLS_ALERT = 0x15, /* the type of a record (RFC 8446, section 5.1) */
};

struct redis_wire {
    union redis_stream *stream;
    struct redis_reader *reader;
    const struct redis_wire_events *events;
    void *arg;
    struct tls_session *tls; /* NULL: plain */
    struct buf collecting;   /* commands not handed to libuv, nor encrypted, yet */
    struct buf sealed;       /* ciphertext not handed to libuv yet */
    struct buf opened;       /* plaintext of what was just read */
    struct buf writing;      /* owned by libuv while is_writing */
    uv_write_t write;
    uint64_t handed;
    bool is_writing, is_broken, is_closing, has_read;
    struct callback closed;
    char input[INPUT_BYTES];
};

static void empty(struct buf *sent);
static void write_out(struct redis_wire *wire);

static void break_wire(struct redis_wire *wire, const char *why)
{
    if (wire->is_broken || wire->is_closing)
        return;
    wire->is_broken = true;
    (void)uv_read_stop(&wire->stream->stream);
    wire->events->broken(wire->arg, why);
}

static bool is_shaking_hands(const struct redis_wire *wire)
{
    return wire->tls && tls_session_state(wire->tls) == TLS_HANDSHAKING;
}

static void read_replies(struct redis_wire *wire)
{
    const struct redis_reply *reply;

    while (!wire->is_closing && !wire->is_broken) {
        enum redis_reader_result result = redis_reader_next(wire->reader, &reply);

        if (result == READER_MORE)
            return;
        if (result == READER_BROKEN)
            break_wire(wire, "it sent an invalid or oversized reply");
        else
            wire->events->reply(wire->arg, reply);
    }
}

static void lend_input(uv_handle_t *handle, UNUSED size_t suggested, uv_buf_t *ret_buf)
{
    struct redis_wire *wire = handle->data;

    *ret_buf = uv_buf_init(wire->input, INPUT_BYTES);
}

static void feed(struct redis_wire *wire, struct text bytes)
{
    wire->has_read |= bytes.len > 0;
    if (bytes.len > 0 && !redis_reader_feed(wire->reader, bytes.ptr, bytes.len))
        break_wire(wire, "it sent an oversized reply");
    else
        read_replies(wire);
}

/* A TLS server answers our first command with an alert. No reply begins like that. */
static bool is_alert(const struct redis_wire *wire, struct text input)
{
    return !wire->has_read && input.len > 0 && input.ptr[0] == TLS_ALERT;
}

/* What has arrived before the end or a failure still counts. */
static void receive(struct redis_wire *wire, struct text input)
{
    bool was_open = tls_session_state(wire->tls) != TLS_HANDSHAKING;
    enum tls_state state = tls_receive(wire->tls, input, &wire->opened, &wire->sealed);
    bool is_open = state == TLS_OPEN || state == TLS_ENDED;

    write_out(wire);
    if (is_open && !was_open && !wire->is_broken)
        wire->events->secured(wire->arg);
    if (!wire->is_closing && !wire->is_broken)
        feed(wire, buf_text(&wire->opened));
    empty(&wire->opened);
    if (state == TLS_ENDED)
        break_wire(wire, "it closed the connection");
    else if (state == TLS_FAILED)
        break_wire(wire, redis_tls_explain(tls_session_reason(wire->tls)));
}

/* Why the connection has ended, which may happen before a server's alert can be read. */
static const char *explain_end(const struct redis_wire *wire, int status)
{
    bool is_ended = status == UV_EOF || status == UV_ECONNRESET || status == UV_EPIPE;

    if (is_ended && is_shaking_hands(wire))
        return "it closed the connection during the TLS handshake";
    if (is_ended && wire->tls && !wire->has_read)
        return "it closed the connection right after the TLS handshake: it may ask for a client certificate, or refuse "
               "ours (--redis-cert, --redis-key)";
    if (is_ended && !wire->has_read && wire->stream->handle.type == UV_TCP)
        return "it closed the connection without an answer: if it speaks TLS, use rediss://";
    return status == UV_EOF ? "it closed the connection" : uv_strerror(status);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *input)
{
    struct redis_wire *wire = stream->data;
    struct text bytes = {input->base, count > 0 ? (size_t)count : 0};

    if (count < 0)
        break_wire(wire, explain_end(wire, (int)count));
    else if (wire->tls)
        receive(wire, bytes);
    else if (is_alert(wire, bytes))
        break_wire(wire, "it speaks TLS: use rediss://");
    else
        feed(wire, bytes);
}

struct redis_wire *redis_wire_create(union redis_stream *stream, struct tls_session *tls,
                                     const struct redis_wire_events *events, void *arg)
{
    struct redis_wire *wire = mem_alloc(sizeof *wire);

    wire->stream = stream;
    wire->tls = tls;
    wire->events = events;
    wire->arg = arg;
    wire->reader = redis_reader_create();
    buf_init(&wire->collecting, OUTPUT_MAX_BYTES);
    buf_init(&wire->writing, tls ? SEALED_MAX_BYTES : OUTPUT_MAX_BYTES);
    buf_init(&wire->sealed, SEALED_MAX_BYTES);
    buf_init(&wire->opened, OPENED_MAX_BYTES);
    stream->handle.data = wire;
    /* Fails only if the stream is not connected, is being read already, or is closing. */
    CHECK(uv_read_start(&stream->stream, lend_input, on_read) == 0);
    return wire;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    const struct callback closed = wire->closed;

    redis_reader_destroy(wire->reader);
    tls_session_free(wire->tls);
    buf_wipe(&wire->sealed);
    buf_wipe(&wire->opened);
    buf_wipe(&wire->collecting);
    buf_wipe(&wire->writing);
    free(wire->stream);
    free(wire);
    callback_run(closed);
}

/* close_notify, if the kernel takes it at once: nobody waits for a peer that is given up. */
static void say_goodbye(struct redis_wire *wire)
{
    uv_buf_t bytes;

    if (!wire->tls || wire->is_broken || wire->is_writing)
        return;
    tls_end(wire->tls, &wire->sealed);
    bytes = uv_buf_init(wire->sealed.ptr, (unsigned)wire->sealed.len);
    if (bytes.len > 0)
        (void)uv_try_write(&wire->stream->stream, &bytes, 1);
}

void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!wire->is_closing);
    say_goodbye(wire);
    wire->is_closing = true;
    wire->closed = (struct callback){closed, arg};
    uv_close(&wire->stream->handle, on_closed);
}

void redis_wire_hand_over(struct redis_wire *wire, void *arg)
{
    wire->arg = arg;
}

struct buf *redis_wire_output(struct redis_wire *wire)
{
    return &wire->collecting;
}

uint64_t redis_wire_appended(const struct redis_wire *wire)
{
    return wire->handed + wire->collecting.len;
}

uint64_t redis_wire_handed(const struct redis_wire *wire)
{
    return wire->handed;
}

/* Commands contain digests, and the greeting a password. */
static void empty(struct buf *sent)
{
    size_t max = sent->max;

    secure_wipe(sent->ptr, sent->len);
    if (sent->capacity > OUTPUT_KEPT_BYTES) {
        buf_finish(sent);
        buf_init(sent, max);
    }
    buf_clear(sent);
}

static void on_written(uv_write_t *write, int status)
{
    struct redis_wire *wire = write->data;

    REQUIRE(wire->is_writing);
    wire->is_writing = false;
    empty(&wire->writing);
    if (status < 0)
        break_wire(wire, explain_end(wire, status));
    else
        redis_wire_flush(wire);
}

static struct buf *outgoing(struct redis_wire *wire)
{
    return wire->tls ? &wire->sealed : &wire->collecting;
}

/* Counts bytes of commands that were given to the kernel or to libuv. Encrypted ones have been counted before. */
static void count_handed(struct redis_wire *wire, size_t bytes)
{
    if (!wire->tls)
        wire->handed += bytes;
}

static void write_rest(struct redis_wire *wire, size_t written)
{
    struct buf *out = outgoing(wire), swap = wire->writing;
    uv_buf_t rest;

    REQUIRE(!wire->is_writing && swap.len == 0 && written < out->len);
    wire->writing = *out;
    *out = swap;
    count_handed(wire, wire->writing.len - written);
    rest = uv_buf_init(wire->writing.ptr + written, (unsigned)(wire->writing.len - written));
    wire->write.data = wire;
    wire->is_writing = true;

    int status = uv_write(&wire->write, &wire->stream->stream, &rest, 1, on_written);
    if (status != 0) {
        wire->is_writing = false;
        break_wire(wire, explain_end(wire, status));
    }
}

static void write_out(struct redis_wire *wire)
{
    struct buf *out = outgoing(wire);

    if (wire->is_writing || wire->is_broken || wire->is_closing || out->len == 0)
        return;

    uv_buf_t bytes = uv_buf_init(out->ptr, (unsigned)out->len);
    int written = uv_try_write(&wire->stream->stream, &bytes, 1);
    if (written < 0 && written != UV_EAGAIN) {
        break_wire(wire, explain_end(wire, written));
        return;
    }

    size_t done = written > 0 ? (size_t)written : 0;
    CHECK(done <= out->len);
    count_handed(wire, done);
    if (done == out->len)
        empty(out);
    else
        write_rest(wire, done);
}

/* Counts commands as handed before they are encrypted: from then on it is never certain that they were not sent. */
static void seal(struct redis_wire *wire)
{
    struct buf *plain = &wire->collecting;

    if (plain->len == 0 || tls_session_state(wire->tls) != TLS_OPEN)
        return;
    wire->handed += plain->len;
    if (!tls_send(wire->tls, buf_text(plain), &wire->sealed) || wire->sealed.failed)
        break_wire(wire, "its TLS connection failed");
    empty(plain);
}

void redis_wire_flush(struct redis_wire *wire)
{
    if (wire->is_writing || wire->is_broken || wire->is_closing)
        return;
    if (wire->tls)
        seal(wire);
    write_out(wire);
}

void redis_wire_begin_handshake(struct redis_wire *wire)
{
    receive(wire, (struct text){NULL, 0});
}
