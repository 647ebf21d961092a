/* What a write did: see simredis_host.log. */
#include "internal.h"

void log_argv(struct simredis *server, unsigned db, size_t argc, const struct text *argv)
{
    char storage[NUMBER_BYTES];

    if (server->is_loading || !server->host.log)
        return;
    if (db != server->logged_db) {
        out_array(&server->log, 2);
        out_text(&server->log, TEXT("SELECT"));
        out_text(&server->log, number_print_i64(storage, db));
        server->logged_db = db;
        server->log_count++;
    }
    out_array(&server->log, argc);
    for (size_t i = 0; i < argc; i++)
        out_text(&server->log, argv[i]);
    server->log_count++;
}

void log_call(struct call *call)
{
    log_argv(call->server, (unsigned)(call->db - call->server->databases), call->argc, call->argv);
}

void log_send(struct simredis *server)
{
    struct buf whole;

    if (server->log_count == 0)
        return;
    buf_init(&whole, SIZE_MAX / 2);
    buf_append_str(&whole, server->log_count > 1 ? "*1\r\n$5\r\nMULTI\r\n" : "");
    buf_append_text(&whole, buf_text(&server->log));
    buf_append_str(&whole, server->log_count > 1 ? "*1\r\n$4\r\nEXEC\r\n" : "");
    server->host.log(server->host.context, whole.ptr, whole.len);
    buf_finish(&whole);
    buf_clear(&server->log);
    server->log_count = 0;
}
