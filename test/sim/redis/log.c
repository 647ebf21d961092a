/* What a write did: see simredis_host.log. */
#include "internal.h"

void log_put(struct log *log, unsigned db, size_t argc, const struct text *argv)
{
    char storage[NUMBER_BYTES];

    if (db != log->db) {
        out_array(&log->bytes, 2);
        out_text(&log->bytes, TEXT("SELECT"));
        out_text(&log->bytes, number_print_i64(storage, db));
        log->db = db;
        log->count++;
    }
    out_array(&log->bytes, argc);
    for (size_t i = 0; i < argc; i++)
        out_text(&log->bytes, argv[i]);
    log->count++;
}

/* A replica passes on what it hears, as it is. */
static bool has_stream(const struct simredis *server)
{
    return server->has_stream && !server->master_host;
}

void log_argv(struct simredis *server, unsigned db, size_t argc, const struct text *argv)
{
    if (server->is_loading)
        return;
    server->logged++;
    if (server->host.log)
        log_put(&server->disk, db, argc, argv);
    if (has_stream(server))
        log_put(&server->stream, db, argc, argv);
}

static unsigned db_of(const struct call *call)
{
    return (unsigned)(call->db - call->server->databases);
}

void log_call(struct call *call)
{
    log_argv(call->server, db_of(call), call->argc, call->argv);
}

void log_message(struct call *call)
{
    if (has_stream(call->server))
        log_put(&call->server->stream, db_of(call), call->argc, call->argv);
}

static struct buf take(struct log *log)
{
    struct buf whole;

    buf_init(&whole, SIZE_MAX / 2);
    buf_append_str(&whole, log->count > 1 ? "*1\r\n$5\r\nMULTI\r\n" : "");
    buf_append_text(&whole, buf_text(&log->bytes));
    buf_append_str(&whole, log->count > 1 ? "*1\r\n$4\r\nEXEC\r\n" : "");
    buf_clear(&log->bytes);
    log->count = 0;
    return whole;
}

void log_send(struct simredis *server)
{
    if (server->disk.count > 0) {
        struct buf whole CLEANUP(buf_finish) = take(&server->disk);

        server->host.log(server->host.context, whole.ptr, whole.len);
    }
    if (server->stream.count > 0) {
        struct buf whole CLEANUP(buf_finish) = take(&server->stream);

        replicas_feed(server, buf_text(&whole));
    }
}
