#include "wire.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "reader.h"
#include <stdlib.h>

enum {
    INPUT_BYTES = 32 * 1024,
    OUTPUT_MAX_BYTES = 16 * 1024 * 1024, /* seconds of full load; a Redis further behind counts as unreachable */
    OUTPUT_KEPT_BYTES = 256 * 1024,      /* a larger buffer, left by a burst, is freed */
};

struct redis_wire {
    union redis_stream *stream;
    struct redis_reader *reader;
    const struct redis_wire_events *events;
    void *arg;
    struct buf collecting; /* not handed to libuv yet */
    struct buf writing;    /* owned by libuv while is_writing */
    uv_write_t write;
    uint64_t handed;
    bool is_writing, is_broken, is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
    char input[INPUT_BYTES];
};

static void break_wire(struct redis_wire *wire, const char *why)
{
    if (wire->is_broken || wire->is_closing)
        return;
    wire->is_broken = true;
    (void)uv_read_stop(&wire->stream->stream);
    wire->events->broken(wire->arg, why);
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

static void lend_input(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct redis_wire *wire = handle->data;

    (void)suggested;
    *ret_buf = uv_buf_init(wire->input, INPUT_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *input)
{
    struct redis_wire *wire = stream->data;

    if (count == UV_EOF)
        break_wire(wire, "it closed the connection");
    else if (count < 0)
        break_wire(wire, uv_strerror((int)count));
    else if (!redis_reader_feed(wire->reader, input->base, (size_t)count))
        break_wire(wire, "it sent an oversized reply");
    else
        read_replies(wire);
}

struct redis_wire *redis_wire_create(union redis_stream *stream, const struct redis_wire_events *events, void *arg)
{
    struct redis_wire *wire = mem_alloc(sizeof *wire);

    wire->stream = stream;
    wire->events = events;
    wire->arg = arg;
    wire->reader = redis_reader_create();
    buf_init(&wire->collecting, OUTPUT_MAX_BYTES);
    buf_init(&wire->writing, OUTPUT_MAX_BYTES);
    stream->handle.data = wire;
    /* Fails only if the stream is not connected, is being read already, or is closing. */
    CHECK(uv_read_start(&stream->stream, lend_input, on_read) == 0);
    return wire;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    void (*closed)(void *arg) = wire->closed;
    void *arg = wire->closed_arg;

    redis_reader_destroy(wire->reader);
    buf_wipe(&wire->collecting);
    buf_wipe(&wire->writing);
    free(wire->stream);
    free(wire);
    closed(arg);
}

void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg)
{
    CHECK(!wire->is_closing);
    wire->is_closing = true;
    wire->closed = closed;
    wire->closed_arg = arg;
    uv_close(&wire->stream->handle, on_closed);
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
    secure_wipe(sent->ptr, sent->len);
    if (sent->capacity > OUTPUT_KEPT_BYTES) {
        buf_finish(sent);
        buf_init(sent, OUTPUT_MAX_BYTES);
    }
    buf_clear(sent);
}

static void on_written(uv_write_t *write, int status)
{
    struct redis_wire *wire = write->data;

    wire->is_writing = false;
    empty(&wire->writing);
    if (status < 0)
        break_wire(wire, uv_strerror(status));
    else
        redis_wire_flush(wire);
}

static void write_rest(struct redis_wire *wire, size_t written)
{
    struct buf swap = wire->writing;
    uv_buf_t rest;

    wire->writing = wire->collecting;
    wire->collecting = swap;
    wire->handed += wire->writing.len - written;
    rest = uv_buf_init(wire->writing.ptr + written, (unsigned)(wire->writing.len - written));
    wire->write.data = wire;
    wire->is_writing = true;

    int status = uv_write(&wire->write, &wire->stream->stream, &rest, 1, on_written);
    if (status != 0) {
        wire->is_writing = false;
        break_wire(wire, uv_strerror(status));
    }
}

void redis_wire_flush(struct redis_wire *wire)
{
    struct buf *out = &wire->collecting;

    if (wire->is_writing || wire->is_broken || wire->is_closing || out->len == 0)
        return;

    uv_buf_t bytes = uv_buf_init(out->ptr, (unsigned)out->len);
    int written = uv_try_write(&wire->stream->stream, &bytes, 1);
    if (written < 0 && written != UV_EAGAIN) {
        break_wire(wire, uv_strerror(written));
        return;
    }

    size_t done = written > 0 ? (size_t)written : 0;
    wire->handed += done;
    if (done == out->len)
        empty(out);
    else
        write_rest(wire, done);
}
