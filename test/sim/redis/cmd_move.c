/* DUMP, RESTORE and MIGRATE. A dump is what snapshot.c says of the value, under an empty name. */
#include "cluster_internal.h"
#include "commands.h"

#include <stdlib.h>

void cmd_dump(struct call *call)
{
    const struct value *value = space_find(call, call->argv[1]);
    struct buf out;

    if (!value) {
        say_nil(call);
        return;
    }
    buf_init(&out, SIZE_MAX / 2);
    snapshot_value(&out, (struct text){"", 0}, value);
    say_text(call, buf_text(&out));
    buf_finish(&out);
}

/* One command of a dump, of the key that is restored. */
static bool replay(const struct call *call, struct request *request)
{
    struct buf silent;
    struct call part = *call;
    bool is_done;

    if (request->argc < 2)
        return false;
    request->argv[1] = call->argv[1];
    part.command = cmd_find(request->argv[0], (struct text){0});
    part.argv = request->argv;
    part.argc = request->argc;
    part.out = &silent;
    if (!part.command || !(part.command->flags & CMD_WRITE) || !cmd_arity_fits(&part))
        return false;
    buf_init(&silent, SIZE_MAX / 2);
    part.command->run(&part);
    is_done = silent.len > 0 && silent.ptr[0] != '-';
    buf_finish(&silent);
    return is_done;
}

/* Without a word to the log. */
static bool replay_all(const struct call *call, struct text dump)
{
    const bool was_loading = call->server->is_loading;
    struct request request;
    bool is_good = dump.len > 0;

    call->server->is_loading = true;
    while (is_good && request_read(dump, &request) == REQUEST_WHOLE) {
        is_good = replay(call, &request);
        dump = text_skip(dump, request.bytes);
        request_finish(&request);
    }
    call->server->is_loading = was_loading;
    return is_good && dump.len == 0;
}

struct restoring {
    bool replaces, is_absolute;
    int64_t expires_ms;
};

static bool read_options(struct call *call, struct restoring *restoring)
{
    *restoring = (struct restoring){.expires_ms = INT64_MAX};
    for (size_t i = 4; i < call->argc; i++) {
        if (arg_is(call, i, "REPLACE"))
            restoring->replaces = true;
        else if (arg_is(call, i, "ABSTTL"))
            restoring->is_absolute = true;
        else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

static bool read_time(struct call *call, struct restoring *restoring)
{
    int64_t ms;

    if (!arg_i64(call, 2, &ms))
        return false;
    if (ms < 0)
        say_error(call, "ERR Invalid TTL value, must be >= 0");
    else if (ms > 0)
        restoring->expires_ms = restoring->is_absolute ? ms : sim_now_ms(call->server) + ms;
    return ms >= 0;
}

static void log_restored(struct call *call, int64_t expires_ms)
{
    char storage[NUMBER_BYTES];

    LOG_ARGV(call, TEXT("RESTORE"), call->argv[1], number_print_i64(storage, expires_ms == INT64_MAX ? 0 : expires_ms),
             call->argv[3], TEXT("REPLACE"), TEXT("ABSTTL"));
}

void cmd_restore(struct call *call)
{
    struct restoring restoring;
    struct value *value;

    if (!read_options(call, &restoring))
        return;
    if (!restoring.replaces && space_find(call, call->argv[1])) {
        say_error(call, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!read_time(call, &restoring))
        return;
    space_delete(call, call->argv[1]);
    if (!replay_all(call, call->argv[3])) {
        say_error(call, "ERR DUMP payload version or checksum are wrong");
        return;
    }
    value = dict_find(&call->db->values, call->argv[1])->object;
    value->expires_ms = restoring.expires_ms;
    log_restored(call, restoring.expires_ms);
    say_ok(call);
}

void cmd_restore_asking(struct call *call)
{
    cmd_restore(call);
}

/* MIGRATE */

struct migration {
    bool copies, replaces;
    struct text user, password; /* without bytes: none */
    size_t first, end;          /* the names */
};

static bool read_migration(struct call *call, struct migration *migration)
{
    *migration = (struct migration){.first = 3, .end = 4};
    for (size_t i = 6; i < call->argc; i++) {
        if (arg_is(call, i, "COPY")) {
            migration->copies = true;
        } else if (arg_is(call, i, "REPLACE")) {
            migration->replaces = true;
        } else if (arg_is(call, i, "AUTH") && i + 1 < call->argc) {
            migration->password = call->argv[++i];
        } else if (arg_is(call, i, "AUTH2") && i + 2 < call->argc) {
            migration->user = call->argv[++i];
            migration->password = call->argv[++i];
        } else if (arg_is(call, i, "KEYS") && call->argv[3].len == 0) {
            migration->first = i + 1;
            migration->end = call->argc;
            return true;
        } else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

static void put_words(struct buf *out, size_t count, const struct text *words)
{
    out_array(out, count);
    for (size_t i = 0; i < count; i++)
        out_text(out, words[i]);
}

static void put_name(struct call *call, const struct migration *migration, struct text name, const struct value *value,
                     struct buf *out)
{
    char storage[NUMBER_BYTES];
    const int64_t left = value->expires_ms - sim_now_ms(call->server);
    struct buf dump;

    buf_init(&dump, SIZE_MAX / 2);
    snapshot_value(&dump, (struct text){"", 0}, value);
    put_words(out, migration->replaces ? 5 : 4,
              (struct text[]){TEXT("RESTORE-ASKING"), name,
                              number_print_i64(storage, value->expires_ms == INT64_MAX ? 0 : left), buf_text(&dump),
                              TEXT("REPLACE")});
    buf_finish(&dump);
}

/* What the target is sent. Returns how many of the names are there. */
static size_t put_all(struct call *call, const struct migration *migration, struct buf *out)
{
    size_t count = 0;

    if (migration->password.ptr && migration->user.ptr)
        put_words(out, 3, (struct text[]){TEXT("AUTH"), migration->user, migration->password});
    else if (migration->password.ptr)
        put_words(out, 2, (struct text[]){TEXT("AUTH"), migration->password});
    for (size_t i = migration->first; i < migration->end; i++) {
        const struct value *value = space_find(call, call->argv[i]);

        if (value)
            put_name(call, migration, call->argv[i], value, out);
        count += value != NULL;
    }
    return count;
}

static bool is_refused(struct call *call, struct text line)
{
    const bool is = text_starts_with(line, TEXT("-"));

    line.len -= line.len > 0 && line.ptr[line.len - 1] == '\r';
    if (is)
        say_errorf(call, "ERR Target instance replied with error: %.*s", TEXT_ARG(text_skip(line, 1)));
    return is;
}

/* The names that the target has taken go, up to the first that it refuses. Each reply is a line. */
static void take_replies(struct call *call, const struct migration *migration, struct text replies)
{
    struct text line = {0};

    if (migration->password.ptr && (!text_next(&replies, '\n', &line) || is_refused(call, line)))
        return;
    for (size_t i = migration->first; i < migration->end; i++) {
        if (!space_find(call, call->argv[i]))
            continue;
        if (!text_next(&replies, '\n', &line) || is_refused(call, line))
            return;
        if (migration->copies)
            continue;
        LOG_ARGV(call, TEXT("DEL"), call->argv[i]);
        space_delete(call, call->argv[i]);
    }
    say_ok(call);
}

void cmd_migrate(struct call *call)
{
    struct migration migration;
    struct buf request, replies;
    int64_t port, timeout_ms;

    if (!read_migration(call, &migration) || !arg_i64(call, 2, &port) || !arg_i64(call, 5, &timeout_ms))
        return;
    buf_init(&request, SIZE_MAX / 2);
    buf_init(&replies, SIZE_MAX / 2);
    if (put_all(call, &migration, &request) == 0)
        say_status(call, "NOKEY");
    else if (!call->server->cluster ||
             !call->server->cluster->bus.ask(call->server->host.context, call->argv[1].ptr, (uint16_t)port, request.ptr,
                                             request.len, &replies))
        say_error(call, "IOERR error or timeout writing to target instance");
    else
        take_replies(call, &migration, buf_text(&replies));
    buf_finish(&request);
    buf_finish(&replies);
}
