#include "internal.h"
#include "commands.h"

#include <inttypes.h>

void cmd_get(struct call *call)
{
    struct value *value;

    if (!space_read(call, call->argv[1], VALUE_STRING, &value))
        return;
    if (value)
        say_text(call, value->string);
    else
        say_nil(call);
}

void cmd_strlen(struct call *call)
{
    struct value *value;

    if (space_read(call, call->argv[1], VALUE_STRING, &value))
        say_integer(call, value ? (int64_t)value->string.len : 0);
}

void cmd_mget(struct call *call)
{
    say_array(call, call->argc - 1);
    for (size_t i = 1; i < call->argc; i++) {
        struct value *value = space_find(call, call->argv[i]);

        if (value && value->type == VALUE_STRING)
            say_text(call, value->string);
        else
            say_nil(call);
    }
}

static void put_pairs(struct call *call)
{
    for (size_t i = 1; i + 1 < call->argc; i += 2)
        space_put(call, call->argv[i], value_new_string(call->argv[i + 1]));
}

static bool are_pairs(struct call *call)
{
    if (call->argc % 2 == 0)
        say_errorf(call, "ERR wrong number of arguments for '%s' command", call->command->name);
    return call->argc % 2 == 1;
}

void cmd_mset(struct call *call)
{
    if (!are_pairs(call))
        return;
    put_pairs(call);
    say_ok(call);
}

/* The options of SET. */
struct set_options {
    bool only_new, only_old, keeps_ttl, returns_old, has_time;
    int64_t expires_ms;
};

bool expiry_read(struct call *call, struct text text, int64_t unit_ms, bool is_absolute, int64_t *ret_ms)
{
    int64_t value, now = is_absolute ? 0 : sim_now_ms(call->server);

    if (!number_parse_i64(text, &value)) {
        say_not_integer(call);
        return false;
    }
    if (__builtin_mul_overflow(value, unit_ms, &value) || __builtin_add_overflow(value, now, &value)) {
        say_errorf(call, "ERR invalid expire time in '%s' command", call->command->name);
        return false;
    }
    *ret_ms = value;
    return true;
}

static bool read_time(struct call *call, size_t index, struct set_options *options)
{
    static const struct {
        const char *word;
        int64_t unit_ms;
        bool is_absolute;
    } TIMES[] = {{"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};

    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        int64_t given;

        if (!arg_is(call, index, TIMES[i].word) || index + 1 == call->argc || options->has_time || options->keeps_ttl)
            continue;
        options->has_time = true;
        if (number_parse_i64(call->argv[index + 1], &given) && given <= 0) {
            say_errorf(call, "ERR invalid expire time in '%s' command", call->command->name);
            return false;
        }
        return expiry_read(call, call->argv[index + 1], TIMES[i].unit_ms, TIMES[i].is_absolute, &options->expires_ms);
    }
    say_syntax(call);
    return false;
}

/* Redis looks at the words first, and at the time's value only then. */
static bool read_options(struct call *call, struct set_options *options)
{
    size_t time_at = 0;

    for (size_t i = 3; i < call->argc; i++) {
        bool is_time =
            arg_is(call, i, "EX") || arg_is(call, i, "PX") || arg_is(call, i, "EXAT") || arg_is(call, i, "PXAT");

        if (arg_is(call, i, "NX") && !options->only_old)
            options->only_new = true;
        else if (arg_is(call, i, "XX") && !options->only_new)
            options->only_old = true;
        else if (arg_is(call, i, "KEEPTTL") && time_at == 0)
            options->keeps_ttl = true;
        else if (arg_is(call, i, "GET"))
            options->returns_old = true;
        else if (is_time && time_at == 0 && !options->keeps_ttl && i + 1 < call->argc)
            time_at = i++;
        else {
            say_syntax(call);
            return false;
        }
    }
    return time_at == 0 || read_time(call, time_at, options);
}

static void log_set(struct call *call, const struct value *value)
{
    char storage[NUMBER_BYTES];

    if (value->expires_ms == INT64_MAX)
        LOG_ARGV(call, TEXT("SET"), call->argv[1], value->string);
    else
        LOG_ARGV(call, TEXT("SET"), call->argv[1], value->string, TEXT("PXAT"),
                 number_print_i64(storage, value->expires_ms));
}

void cmd_set(struct call *call)
{
    struct set_options options = {.expires_ms = INT64_MAX};
    struct value *old, *value;

    if (!read_options(call, &options))
        return;
    if (options.returns_old) {
        if (!space_read(call, call->argv[1], VALUE_STRING, &old))
            return;
        if (old)
            say_text(call, old->string);
        else
            say_nil(call);
    } else {
        old = space_find(call, call->argv[1]);
    }
    if ((options.only_new && old) || (options.only_old && !old)) {
        if (!options.returns_old)
            say_nil(call);
        return;
    }
    value = value_new_string(call->argv[2]);
    value->expires_ms = options.keeps_ttl && old ? old->expires_ms : options.expires_ms;
    log_set(call, value);
    space_put(call, call->argv[1], value);
    if (!options.returns_old)
        say_ok(call);
}

void cmd_setnx(struct call *call)
{
    bool is_there = space_find(call, call->argv[1]);

    if (!is_there)
        space_put(call, call->argv[1], value_new_string(call->argv[2]));
    say_integer(call, !is_there);
}

static void increase(struct call *call, int64_t by)
{
    struct value *value;
    int64_t number = 0;
    char storage[NUMBER_BYTES];

    if (!space_read(call, call->argv[1], VALUE_STRING, &value))
        return;
    if (value && !number_parse_i64(value->string, &number)) {
        say_not_integer(call);
        return;
    }
    if (__builtin_add_overflow(number, by, &number)) {
        say_error(call, "ERR increment or decrement would overflow");
        return;
    }
    if (value)
        value_set_string(value, number_print_i64(storage, number));
    else
        space_put(call, call->argv[1], value_new_string(number_print_i64(storage, number)));
    say_integer(call, number);
}

void cmd_incr(struct call *call)
{
    increase(call, 1);
}

void cmd_decr(struct call *call)
{
    increase(call, -1);
}

void cmd_incrby(struct call *call)
{
    int64_t by;

    if (arg_i64(call, 2, &by))
        increase(call, by);
}

void cmd_getdel(struct call *call)
{
    struct value *value;

    if (!space_read(call, call->argv[1], VALUE_STRING, &value))
        return;
    if (!value) {
        say_nil(call);
        return;
    }
    say_text(call, value->string);
    space_delete(call, call->argv[1]);
}
