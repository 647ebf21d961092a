#include "commands.h"
#include "internal.h"

#include <stdlib.h>

const char *value_type_name(const struct value *value)
{
    static const char *const NAMES[] = {[VALUE_STRING] = "string", [VALUE_LIST] = "list", [VALUE_SET] = "set",
                                        [VALUE_ZSET] = "zset",     [VALUE_HASH] = "hash", [VALUE_STREAM] = "stream"};

    return NAMES[value->type];
}

void cmd_del(struct call *call)
{
    int64_t deleted = 0;

    for (size_t i = 1; i < call->argc; i++)
        deleted += space_delete(call, call->argv[i]);
    say_integer(call, deleted);
}

void cmd_exists(struct call *call)
{
    int64_t count = 0;

    for (size_t i = 1; i < call->argc; i++)
        count += space_find(call, call->argv[i]) != NULL;
    say_integer(call, count);
}

void cmd_type(struct call *call)
{
    struct value *value = space_find(call, call->argv[1]);

    say_status(call, value ? value_type_name(value) : "none");
}

void cmd_rename(struct call *call)
{
    struct value *value = space_find(call, call->argv[1]);

    if (!value) {
        say_error(call, "ERR no such key");
        return;
    }
    if (!text_equal(call->argv[1], call->argv[2])) {
        dict_find(&call->db->values, call->argv[1])->object = NULL;
        (void)!space_delete(call, call->argv[2]);
        space_put(call, call->argv[2], value);
        dict_remove(&call->db->values, dict_find(&call->db->values, call->argv[1]));
    }
    say_ok(call);
}

struct expire_options {
    bool only_new, only_old, only_later, only_sooner;
};

static bool read_options(struct call *call, struct expire_options *options)
{
    for (size_t i = 3; i < call->argc; i++) {
        if (arg_is(call, i, "NX"))
            options->only_new = true;
        else if (arg_is(call, i, "XX"))
            options->only_old = true;
        else if (arg_is(call, i, "GT"))
            options->only_later = true;
        else if (arg_is(call, i, "LT"))
            options->only_sooner = true;
        else {
            say_errorf(call, "ERR Unsupported option %.*s", TEXT_ARG(call->argv[i]));
            return false;
        }
    }
    if (options->only_new && (options->only_old || options->only_later || options->only_sooner))
        say_error(call, "ERR NX and XX, GT or LT options at the same time are not compatible");
    else if (options->only_later && options->only_sooner)
        say_error(call, "ERR GT and LT options at the same time are not compatible");
    else
        return true;
    return false;
}

static bool may_set(const struct value *value, const struct expire_options *options, int64_t when)
{
    bool has_time = value->expires_ms != INT64_MAX;

    return !(options->only_new && has_time) && !(options->only_old && !has_time) &&
           !(options->only_later && when <= value->expires_ms) && !(options->only_sooner && when >= value->expires_ms);
}

static void set_time(struct call *call, int64_t unit_ms, bool is_absolute)
{
    struct expire_options options = {0};
    char storage[NUMBER_BYTES];
    struct value *value;
    int64_t when;

    if (!read_options(call, &options) || !expiry_read(call, call->argv[2], unit_ms, is_absolute, &when))
        return;
    value = space_find(call, call->argv[1]);
    if (!value || !may_set(value, &options, when)) {
        say_integer(call, 0);
        return;
    }
    LOG_ARGV(call, TEXT("PEXPIREAT"), call->argv[1], number_print_i64(storage, when));
    if (when <= sim_now_ms(call->server) && !call->server->is_loading)
        space_delete(call, call->argv[1]);
    else
        value->expires_ms = when;
    say_integer(call, 1);
}

void cmd_expire(struct call *call)
{
    set_time(call, 1000, false);
}

void cmd_pexpire(struct call *call)
{
    set_time(call, 1, false);
}

void cmd_expireat(struct call *call)
{
    set_time(call, 1000, true);
}

void cmd_pexpireat(struct call *call)
{
    set_time(call, 1, true);
}

/* -2: no key; -1: it stays. */
static void say_time(struct call *call, int64_t unit_ms, bool is_absolute)
{
    struct value *value = space_find(call, call->argv[1]);
    int64_t left;

    if (!value || value->expires_ms == INT64_MAX) {
        say_integer(call, value ? -1 : -2);
        return;
    }
    left = is_absolute ? value->expires_ms : value->expires_ms - sim_now_ms(call->server);
    say_integer(call, unit_ms == 1 ? left : (left + unit_ms / 2) / unit_ms);
}

void cmd_ttl(struct call *call)
{
    say_time(call, 1000, false);
}

void cmd_pttl(struct call *call)
{
    say_time(call, 1, false);
}

void cmd_expiretime(struct call *call)
{
    say_time(call, 1000, true);
}

void cmd_pexpiretime(struct call *call)
{
    say_time(call, 1, true);
}

void cmd_persist(struct call *call)
{
    struct value *value = space_find(call, call->argv[1]);
    bool had_time = value && value->expires_ms != INT64_MAX;

    if (had_time)
        value->expires_ms = INT64_MAX;
    say_integer(call, had_time);
}

static bool is_expired(const struct call *call, const struct dict_entry *entry)
{
    const struct value *value = entry->object;

    return value->expires_ms < sim_now_ms(call->server);
}

void cmd_keys(struct call *call)
{
    struct text *found = mem_alloc((call->db->values.count + 1) * sizeof *found);
    struct dict_entry *entry;
    size_t place = 0, count = 0;

    while ((entry = dict_next(&call->db->values, &place)))
        if (!is_expired(call, entry) && glob_matches(call->argv[1], entry->key, false))
            found[count++] = entry->key;
    say_array(call, count);
    for (size_t i = 0; i < count; i++)
        say_text(call, found[i]);
    free(found);
}

/* With those that have expired and have not been looked at since. */
void cmd_dbsize(struct call *call)
{
    say_integer(call, (int64_t)call->db->values.count);
}

static bool flush_options_fit(struct call *call)
{
    if (call->argc == 1 || (call->argc == 2 && (arg_is(call, 1, "SYNC") || arg_is(call, 1, "ASYNC"))))
        return true;
    say_syntax(call);
    return false;
}

void cmd_flushall(struct call *call)
{
    if (!flush_options_fit(call))
        return;
    for (size_t i = 0; i < SIM_DATABASES; i++)
        database_clear(&call->server->databases[i]);
    say_ok(call);
}

void cmd_flushdb(struct call *call)
{
    if (!flush_options_fit(call))
        return;
    database_clear(call->db);
    say_ok(call);
}
