#include "commands.h"
#include "internal.h"

#include <stdlib.h>

enum { INTEGERS_MAX = 512 }; /* Redis' set-max-intset-entries */

static bool read_set(struct call *call, size_t index, struct value **ret_value)
{
    return space_read(call, call->argv[index], VALUE_SET, ret_value);
}

static int compare_integers(const void *a, const void *b)
{
    int64_t left = 0, right = 0;

    (void)!number_parse_i64(*(const struct text *)a, &left);
    (void)!number_parse_i64(*(const struct text *)b, &right);
    return (left > right) - (left < right);
}

struct text *set_members(const struct value *set, size_t *ret_count)
{
    size_t count = set ? set->dict.count : 0, place = 0;
    struct text *members = mem_alloc((count + 1) * sizeof *members);

    for (size_t i = 0; i < count; i++)
        members[i] = dict_next(&set->dict, &place)->key;
    if (set && set->has_only_integers)
        qsort(members, count, sizeof *members, compare_integers);
    *ret_count = count;
    return members;
}

static bool set_add(struct value *set, struct text member)
{
    int64_t number;
    bool is_new;

    dict_add(&set->dict, member, &is_new);
    set->has_only_integers &= number_parse_i64(member, &number) && set->dict.count <= INTEGERS_MAX;
    return is_new;
}

void cmd_sadd(struct call *call)
{
    struct value *set;
    int64_t added = 0;

    if (!space_write(call, call->argv[1], VALUE_SET, &set))
        return;
    for (size_t i = 2; i < call->argc; i++)
        added += set_add(set, call->argv[i]);
    say_integer(call, added);
}

void cmd_srem(struct call *call)
{
    struct value *set;
    int64_t removed = 0;

    if (!read_set(call, 1, &set))
        return;
    for (size_t i = 2; set && i < call->argc; i++) {
        struct dict_entry *entry = dict_find(&set->dict, call->argv[i]);

        if (!entry)
            continue;
        dict_remove(&set->dict, entry);
        removed++;
    }
    space_prune(call, call->argv[1], set);
    say_integer(call, removed);
}

void cmd_scard(struct call *call)
{
    struct value *set;

    if (read_set(call, 1, &set))
        say_integer(call, set ? (int64_t)set->dict.count : 0);
}

static bool has_member(const struct value *set, struct text member)
{
    return set && dict_find(&set->dict, member);
}

void cmd_sismember(struct call *call)
{
    struct value *set;

    if (read_set(call, 1, &set))
        say_integer(call, has_member(set, call->argv[2]));
}

void cmd_smismember(struct call *call)
{
    struct value *set;

    if (!read_set(call, 1, &set))
        return;
    say_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        say_integer(call, has_member(set, call->argv[i]));
}

static void say_members(struct call *call, const struct text *members, size_t count)
{
    say_array(call, count);
    for (size_t i = 0; i < count; i++)
        say_text(call, members[i]);
}

void cmd_smembers(struct call *call)
{
    struct value *set;
    size_t count;

    if (!read_set(call, 1, &set))
        return;
    struct text *members = set_members(set, &count);
    say_members(call, members, count);
    free(members);
}

/* count below 0: so many, each of them any. */
static void choose_members(struct call *call, const struct value *set, int64_t count)
{
    size_t all, taken = 0;
    struct text *members = set_members(set, &all);
    size_t most = count < 0 ? (size_t)-count : (size_t)count < all ? (size_t)count : all;
    bool *chosen;

    if (count < 0) {
        say_array(call, most);
        for (size_t i = 0; i < most; i++)
            say_text(call, members[sim_random(call->server) % all]);
    } else {
        chosen = choose_places(call->server, all, most);
        for (size_t i = 0; i < all; i++)
            if (chosen[i])
                members[taken++] = members[i];
        free(chosen);
        say_members(call, members, taken);
    }
    free(members);
}

void cmd_srandmember(struct call *call)
{
    struct value *set;
    int64_t count = 1;

    if (call->argc > 3) {
        say_syntax(call);
        return;
    }
    if (call->argc > 2 && !random_count(call, 2, &count))
        return;
    if (!read_set(call, 1, &set))
        return;
    if (!set && call->argc == 2)
        say_nil(call);
    else if (!set)
        say_array(call, 0);
    else if (call->argc == 2)
        say_text(call, dict_at(&set->dict, sim_random(call->server) % set->dict.count)->key);
    else
        choose_members(call, set, count);
}

void cmd_sdiffstore(struct call *call)
{
    struct value *set, *result = value_new(VALUE_SET);
    size_t place = 0;

    for (size_t i = 2; i < call->argc; i++)
        if (!read_set(call, i, &set)) {
            value_free(result);
            return;
        }
    (void)!read_set(call, 2, &set);
    for (struct dict_entry *entry; set && (entry = dict_next(&set->dict, &place));) {
        bool is_elsewhere = false;

        for (size_t i = 3; i < call->argc; i++)
            is_elsewhere |= has_member(space_find(call, call->argv[i]), entry->key);
        if (!is_elsewhere)
            set_add(result, entry->key);
    }
    say_integer(call, (int64_t)result->dict.count);
    if (result->dict.count > 0) {
        space_put(call, call->argv[1], result);
        return;
    }
    value_free(result);
    space_delete(call, call->argv[1]);
}
