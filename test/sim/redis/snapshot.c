/* What is on a disk: the data as commands. */
#include "commands.h"
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_number(struct buf *out, int64_t number)
{
    char storage[NUMBER_BYTES];

    out_text(out, number_print_i64(storage, number));
}

static void put_command(struct buf *out, size_t argc, const char *name, struct text key)
{
    out_array(out, argc);
    out_text(out, text_of(name));
    out_text(out, key);
}

static void put_id(struct buf *out, struct stream_id id)
{
    char storage[NUMBER_BYTES];
    int len = snprintf(storage, sizeof storage, "%" PRIu64 "-%" PRIu64, id.ms, id.seq);

    out_text(out, (struct text){storage, (size_t)len});
}

/* An empty one has had an entry, which is made and deleted. */
static void put_stream(struct buf *out, struct text key, const struct stream *stream)
{
    struct stream_place place = {0};
    bool is_there = stream->length > 0;

    if (!is_there) {
        put_command(out, 5, "XADD", key);
        put_id(out, (struct stream_id){0, 1});
        out_text(out, TEXT(""));
        out_text(out, TEXT(""));
        put_command(out, 3, "XDEL", key);
        put_id(out, (struct stream_id){0, 1});
    }
    for (; is_there; is_there = stream_next(stream, &place)) {
        const struct stream_entry *entry = stream_at(stream, place);

        put_command(out, 3 + entry->count, "XADD", key);
        put_id(out, entry->id);
        for (size_t i = 0; i < entry->count; i++)
            out_text(out, entry->fields[i]);
    }
    put_command(out, 7, "XSETID", key);
    put_id(out, stream->last);
    out_text(out, TEXT("ENTRIESADDED"));
    put_number(out, (int64_t)stream->added);
    out_text(out, TEXT("MAXDELETEDID"));
    put_id(out, stream->deleted);
}

static void put_hash(struct buf *out, struct text key, const struct dict *dict)
{
    struct dict_entry *entry;
    size_t place = 0;

    while ((entry = dict_next(dict, &place))) {
        put_command(out, 4, "HSET", key);
        out_text(out, entry->key);
        out_text(out, entry->text);
    }
}

static void put_set(struct buf *out, struct text key, const struct dict *dict)
{
    struct dict_entry *entry;
    size_t place = 0;

    while ((entry = dict_next(dict, &place))) {
        put_command(out, 3, "SADD", key);
        out_text(out, entry->key);
    }
}

static void put_zset(struct buf *out, struct text key, const struct zset *zset)
{
    char storage[NUMBER_BYTES];

    for (size_t i = 0; i < zset_count(zset); i++) {
        put_command(out, 4, "ZADD", key);
        out_text(out, number_print_double(storage, zset->order[i]->score));
        out_text(out, zset->order[i]->key);
    }
}

void snapshot_value(struct buf *out, struct text key, const struct value *value)
{
    switch (value->type) {
    case VALUE_STRING:
        put_command(out, 3, "SET", key);
        out_text(out, value->string);
        break;
    case VALUE_LIST:
        for (size_t i = 0; i < value->item_count; i++) {
            put_command(out, 3, "RPUSH", key);
            out_text(out, value->items[i]);
        }
        break;
    case VALUE_SET:
        put_set(out, key, &value->dict);
        break;
    case VALUE_ZSET:
        put_zset(out, key, &value->zset);
        break;
    case VALUE_HASH:
        put_hash(out, key, &value->dict);
        break;
    case VALUE_STREAM:
        put_stream(out, key, &value->stream);
        break;
    }
    if (value->expires_ms == INT64_MAX)
        return;
    put_command(out, 3, "PEXPIREAT", key);
    put_number(out, value->expires_ms);
}

struct buf snapshot_take(struct simredis *server, unsigned db)
{
    struct buf out;
    struct dict_entry *entry;

    buf_init(&out, SIZE_MAX / 2);
    for (size_t i = 0; i < SIM_DATABASES; i++) {
        size_t place = 0;

        out_array(&out, 2);
        out_text(&out, TEXT("SELECT"));
        put_number(&out, (int64_t)i);
        while ((entry = dict_next(&server->databases[i].values, &place)))
            snapshot_value(&out, entry->key, entry->object);
    }
    out_array(&out, 2);
    out_text(&out, TEXT("SELECT"));
    put_number(&out, db);
    return out;
}

char *simredis_save(struct simredis *server, size_t *ret_length)
{
    struct buf out = snapshot_take(server, server->disk.db);

    *ret_length = out.len;
    return out.ptr;
}

bool commands_run(struct simredis *server, unsigned *db, const struct request *request)
{
    struct buf out;
    int64_t number;
    struct call call = {.server = server,
                        .command = cmd_find(request->argv[0], (struct text){0}),
                        .argv = request->argv,
                        .argc = request->argc,
                        .out = &out,
                        .db = &server->databases[*db]};

    if (arg_is(&call, 0, "MULTI") || arg_is(&call, 0, "EXEC"))
        return true;
    if (arg_is(&call, 0, "SELECT")) {
        if (request->argc != 2 || !number_parse_i64(request->argv[1], &number) || number < 0 || number >= SIM_DATABASES)
            return false;
        *db = (unsigned)number;
        return true;
    }
    buf_init(&out, SIZE_MAX / 2);
    server->is_loading = true;
    sim_run_command(&call);
    server->is_loading = false;
    bool is_done = call.command && (call.command->flags & CMD_WRITE) && out.len > 0 && out.ptr[0] != '-';
    buf_finish(&out);
    return is_done;
}

size_t commands_whole(struct text bytes)
{
    struct request request;
    size_t at = 0, whole = 0;
    bool in_group = false;

    while (request_read(text_skip(bytes, at), &request) == REQUEST_WHOLE) {
        bool is_begin = request.argc == 1 && text_equal(request.argv[0], TEXT("MULTI"));
        bool is_end = request.argc == 1 && text_equal(request.argv[0], TEXT("EXEC"));

        at += request.bytes;
        in_group = (in_group || is_begin) && !is_end;
        whole = in_group ? whole : at;
        request_finish(&request);
    }
    return whole;
}

bool simredis_load(struct simredis *server, const char *bytes, size_t length)
{
    struct text rest = {bytes, commands_whole((struct text){bytes, length})};
    struct request request;
    unsigned db = 0;
    bool is_good = true;

    while (is_good && request_read(rest, &request) == REQUEST_WHOLE) {
        is_good = request.argc > 0 && commands_run(server, &db, &request);
        rest = text_skip(rest, request.bytes);
        request_finish(&request);
    }
    server->disk.db = db;
    return is_good && rest.len == 0;
}
