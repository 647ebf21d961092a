#include "commands.h"
#include "internal.h"
#include <stdlib.h>

static bool read_hash(struct call *call, struct value **ret_value)
{
    return space_read(call, call->argv[1], VALUE_HASH, ret_value);
}

static struct dict_entry *field_of(const struct value *hash, struct text field)
{
    return hash ? dict_find(&hash->dict, field) : NULL;
}

static void say_field(struct call *call, const struct dict_entry *field)
{
    if (field)
        say_text(call, field->text);
    else
        say_nil(call);
}

void cmd_hget(struct call *call)
{
    struct value *hash;

    if (read_hash(call, &hash))
        say_field(call, field_of(hash, call->argv[2]));
}

void cmd_hmget(struct call *call)
{
    struct value *hash;

    if (!read_hash(call, &hash))
        return;
    say_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        say_field(call, field_of(hash, call->argv[i]));
}

void cmd_hexists(struct call *call)
{
    struct value *hash;

    if (read_hash(call, &hash))
        say_integer(call, field_of(hash, call->argv[2]) != NULL);
}

void cmd_hlen(struct call *call)
{
    struct value *hash;

    if (read_hash(call, &hash))
        say_integer(call, hash ? (int64_t)hash->dict.count : 0);
}

void cmd_hstrlen(struct call *call)
{
    struct value *hash;

    if (!read_hash(call, &hash))
        return;
    struct dict_entry *field = field_of(hash, call->argv[2]);
    say_integer(call, field ? (int64_t)field->text.len : 0);
}

static void say_all(struct call *call, bool names, bool values)
{
    struct value *hash;
    struct dict_entry *field;
    size_t place = 0;

    if (!read_hash(call, &hash))
        return;
    say_array(call, hash ? hash->dict.count * (names && values ? 2 : 1) : 0);
    while (hash && (field = dict_next(&hash->dict, &place))) {
        if (names)
            say_text(call, field->key);
        if (values)
            say_text(call, field->text);
    }
}

void cmd_hgetall(struct call *call)
{
    say_all(call, true, true);
}

void cmd_hkeys(struct call *call)
{
    say_all(call, true, false);
}

void cmd_hvals(struct call *call)
{
    say_all(call, false, true);
}

void cmd_hset(struct call *call)
{
    struct value *hash;
    int64_t added = 0;
    bool is_new;

    if (call->argc % 2 == 1) {
        say_errorf(call, "ERR wrong number of arguments for '%s' command", call->command->name);
        return;
    }
    if (!space_write(call, call->argv[1], VALUE_HASH, &hash))
        return;
    for (size_t i = 2; i < call->argc; i += 2) {
        dict_set_text(dict_add(&hash->dict, call->argv[i], &is_new), call->argv[i + 1]);
        added += is_new;
    }
    if (call->command->run == cmd_hmset)
        say_ok(call);
    else
        say_integer(call, added);
}

void cmd_hmset(struct call *call)
{
    cmd_hset(call);
}

void cmd_hsetnx(struct call *call)
{
    struct value *hash;
    bool is_new;

    if (!space_write(call, call->argv[1], VALUE_HASH, &hash))
        return;
    struct dict_entry *field = dict_add(&hash->dict, call->argv[2], &is_new);
    if (is_new)
        dict_set_text(field, call->argv[3]);
    say_integer(call, is_new);
}

void cmd_hdel(struct call *call)
{
    struct value *hash;
    int64_t removed = 0;

    if (!read_hash(call, &hash))
        return;
    for (size_t i = 2; i < call->argc; i++) {
        struct dict_entry *field = field_of(hash, call->argv[i]);

        if (!field)
            continue;
        dict_remove(&hash->dict, field);
        removed++;
    }
    space_prune(call, call->argv[1], hash);
    say_integer(call, removed);
}

void cmd_hincrby(struct call *call)
{
    struct value *hash;
    int64_t by, number = 0;
    char storage[NUMBER_BYTES];

    if (!arg_i64(call, 3, &by) || !read_hash(call, &hash))
        return;
    struct dict_entry *field = field_of(hash, call->argv[2]);
    if (field && !number_parse_i64(field->text, &number)) {
        say_error(call, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(number, by, &number)) {
        say_error(call, "ERR increment or decrement would overflow");
        return;
    }
    if (!space_write(call, call->argv[1], VALUE_HASH, &hash))
        return;
    dict_set_text(dict_add(&hash->dict, call->argv[2], NULL), number_print_i64(storage, number));
    say_integer(call, number);
}

static void say_random(struct call *call, const struct dict_entry *field, bool with_values)
{
    say_text(call, field->key);
    if (with_values)
        say_text(call, field->text);
}

/* A random choice of `count` different places of `all`, as a mark for each; the caller frees it. */
bool *choose_places(struct simredis *server, size_t all, size_t count)
{
    bool *chosen = mem_alloc(all + 1);

    for (size_t left = count, at = 0; at < all; at++) {
        if (sim_random(server) % (all - at) >= left)
            continue;
        chosen[at] = true;
        left--;
    }
    return chosen;
}

bool random_count(struct call *call, size_t index, int64_t *ret_count)
{
    if (!arg_i64(call, index, ret_count))
        return false;
    if (*ret_count == INT64_MIN) {
        say_error(call, "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
        return false;
    }
    return true;
}

bool fits_twice(struct call *call, int64_t count)
{
    bool fits = count >= -(INT64_MAX / 2) && count <= INT64_MAX / 2;

    if (!fits)
        say_error(call, "ERR value is out of range");
    return fits;
}

/* count below 0: so many, each of them any. */
static void choose_fields(struct call *call, const struct value *hash, int64_t count, bool with_values)
{
    size_t all = hash->dict.count, place = 0;
    size_t most = count < 0 ? (size_t)-count : (size_t)count < all ? (size_t)count : all;
    bool *chosen;

    say_array(call, most * (with_values ? 2 : 1));
    if (count < 0) {
        for (size_t i = 0; i < most; i++)
            say_random(call, dict_at(&hash->dict, sim_random(call->server) % all), with_values);
        return;
    }
    chosen = choose_places(call->server, all, most);
    for (size_t i = 0; i < all; i++) {
        struct dict_entry *field = dict_next(&hash->dict, &place);

        if (chosen[i])
            say_random(call, field, with_values);
    }
    free(chosen);
}

void cmd_hrandfield(struct call *call)
{
    struct value *hash;
    int64_t count = 1;
    bool with_values = arg_is(call, 3, "WITHVALUES");

    if (call->argc > 2 && !random_count(call, 2, &count))
        return;
    if (call->argc > 4 || (call->argc == 4 && !with_values)) {
        say_syntax(call);
        return;
    }
    if ((with_values && !fits_twice(call, count)) || !read_hash(call, &hash))
        return;
    if (!hash && call->argc == 2)
        say_nil(call);
    else if (!hash)
        say_array(call, 0);
    else if (call->argc == 2)
        say_text(call, dict_at(&hash->dict, sim_random(call->server) % hash->dict.count)->key);
    else
        choose_fields(call, hash, count, with_values);
}
