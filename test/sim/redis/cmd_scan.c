/* Walks in steps. A cursor is the number of the next entry: see dict.h. */
#include "commands.h"
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct scan {
    uint64_t cursor;
    int64_t count;
    struct text pattern, type;
};

static bool read_options(struct call *call, size_t first, struct scan *scan)
{
    for (size_t i = first; i < call->argc; i += 2) {
        bool is_more = i + 1 < call->argc;

        if (is_more && arg_is(call, i, "COUNT")) {
            if (!arg_i64(call, i + 1, &scan->count))
                return false;
            if (scan->count >= 1)
                continue;
        } else if (is_more && arg_is(call, i, "MATCH")) {
            scan->pattern = call->argv[i + 1];
            continue;
        } else if (is_more && first == 2 && arg_is(call, i, "TYPE")) {
            scan->type = call->argv[i + 1];
            continue;
        }
        say_syntax(call);
        return false;
    }
    return true;
}

static bool read_scan(struct call *call, size_t cursor, struct scan *ret_scan)
{
    const char *text = call->argv[cursor].ptr;
    char *end;

    *ret_scan = (struct scan){.count = 10};
    errno = 0;
    ret_scan->cursor = strtoul(text, &end, 10); /* as Redis does: "" is 0, and "-1" is far away */
    if (!isspace((unsigned char)text[0]) && *end == '\0' && errno != ERANGE)
        return true;
    say_error(call, "ERR invalid cursor");
    return false;
}

static void say_found(struct call *call, uint64_t cursor, const struct text *found, size_t count)
{
    char storage[NUMBER_BYTES];

    say_array(call, 2);
    say_text(call, number_print_i64(storage, (int64_t)cursor));
    say_array(call, count);
    for (size_t i = 0; i < count; i++)
        say_text(call, found[i]);
}

/* Returns the next cursor. pairs: of a hash, with its values. */
static uint64_t walk(const struct dict *dict, const struct scan *scan, bool pairs, struct text *found,
                     size_t *ret_count)
{
    size_t place = dict_place_of(dict, scan->cursor);
    struct dict_entry *entry = NULL;

    *ret_count = 0;
    for (int64_t left = scan->count; left > 0 && (entry = dict_next(dict, &place)); left--) {
        if (scan->pattern.ptr && !glob_matches(scan->pattern, entry->key, false))
            continue;
        found[(*ret_count)++] = entry->key;
        if (pairs)
            found[(*ret_count)++] = entry->text;
    }
    entry = entry ? dict_next(dict, &place) : NULL;
    return entry ? entry->number : 0;
}

static void scan_dict(struct call *call, const struct dict *dict, const struct scan *scan, bool pairs)
{
    struct text *found = mem_alloc((2 * dict->count + 1) * sizeof *found);
    size_t count;
    uint64_t next = walk(dict, scan, pairs, found, &count);

    say_found(call, next, found, count);
    free(found);
}

static void scan_value(struct call *call, enum value_type type)
{
    struct scan scan;
    struct value *value;

    if (!read_scan(call, 2, &scan) || !space_read(call, call->argv[1], type, &value))
        return;
    if (!value) {
        say_found(call, 0, NULL, 0);
        return;
    }
    if (!read_options(call, 3, &scan))
        return;
    if (value->has_only_integers) {
        size_t all, kept = 0;
        struct text *members = set_members(value, &all);

        for (size_t i = 0; i < all; i++)
            if (!scan.pattern.ptr || glob_matches(scan.pattern, members[i], false))
                members[kept++] = members[i];
        say_found(call, 0, members, kept);
        free(members);
        return;
    }
    scan_dict(call, &value->dict, &scan, type == VALUE_HASH);
}

void cmd_sscan(struct call *call)
{
    scan_value(call, VALUE_SET);
}

void cmd_hscan(struct call *call)
{
    scan_value(call, VALUE_HASH);
}

void cmd_scan(struct call *call)
{
    struct scan scan;
    size_t count, kept = 0;

    if (!read_scan(call, 1, &scan) || !read_options(call, 2, &scan))
        return;
    struct text *found = mem_alloc((call->db->values.count + 1) * sizeof *found);
    uint64_t next = walk(&call->db->values, &scan, false, found, &count);
    for (size_t i = 0; i < count; i++) {
        struct text own = text_own(found[i]);
        struct value *value = space_find(call, own);

        if (value && (!scan.type.ptr || text_equal_nocase(scan.type, text_of(value_type_name(value)))))
            found[kept++] = found[i];
        text_release(own);
    }
    say_found(call, next, found, kept);
    free(found);
}
