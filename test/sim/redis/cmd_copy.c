/* COPY and SORT. */
#include "commands.h"
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* DB and REPLACE. False: the error is said. */
static bool read_copy_options(struct call *call, struct database **db, bool *replaces)
{
    int64_t number;

    for (size_t i = 3; i < call->argc; i++) {
        if (arg_is(call, i, "REPLACE")) {
            *replaces = true;
        } else if (arg_is(call, i, "DB") && i + 1 < call->argc) {
            if (!arg_i64(call, ++i, &number))
                return false;
            if (number < 0 || number >= SIM_DATABASES) {
                say_error(call, "ERR DB index is out of range");
                return false;
            }
            *db = &call->server->databases[number];
        } else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

void cmd_copy(struct call *call)
{
    struct call there = *call;
    const struct value *value;
    bool replaces = false;

    if (!read_copy_options(call, &there.db, &replaces))
        return;
    if (there.db == call->db && text_equal(call->argv[1], call->argv[2])) {
        say_error(call, "ERR source and destination objects are the same");
        return;
    }
    value = space_find(call, call->argv[1]);
    bool is_copied = value && (!space_find(&there, call->argv[2]) || replaces);
    if (is_copied) {
        space_delete(&there, call->argv[2]);
        space_put(&there, call->argv[2], value_copy(value));
    }
    say_integer(call, is_copied);
}

struct sort {
    bool is_alpha, is_down;
    int64_t skipped, most; /* most: below 0: all */
};

/* Without BY, GET and STORE. */
static bool read_sort_options(struct call *call, struct sort *sort)
{
    *sort = (struct sort){.most = -1};
    for (size_t i = 2; i < call->argc; i++) {
        if (arg_is(call, i, "ALPHA")) {
            sort->is_alpha = true;
        } else if (arg_is(call, i, "ASC") || arg_is(call, i, "DESC")) {
            sort->is_down = arg_is(call, i, "DESC");
        } else if (arg_is(call, i, "LIMIT") && i + 2 < call->argc) {
            if (!arg_i64(call, i + 1, &sort->skipped) || !arg_i64(call, i + 2, &sort->most))
                return false;
            i += 2;
        } else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

/* The elements of a list, set or sorted set, which the caller frees; NULL: another type, which is said. */
static struct text *elements_of(struct call *call, const struct value *value, size_t *ret_count)
{
    struct text *elements;
    size_t count;

    *ret_count = 0;
    if (value && value->type != VALUE_LIST && value->type != VALUE_SET && value->type != VALUE_ZSET) {
        say_wrong_type(call);
        return NULL;
    }
    if (!value || value->type == VALUE_SET)
        return set_members(value, ret_count);
    count = value->type == VALUE_LIST ? value->item_count : zset_count(&value->zset);
    elements = mem_alloc((count + 1) * sizeof *elements);
    for (size_t i = 0; i < count; i++)
        elements[i] = value->type == VALUE_LIST ? value->items[i] : value->zset.order[i]->key;
    *ret_count = count;
    return elements;
}

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = len > 0 ? memcmp(left->ptr, right->ptr, len) : 0;

    return order ? order : (left->len > right->len) - (left->len < right->len);
}

/* As SORT reads one: "" is 0, and blanks may stand in front. */
static bool read_number(struct text text, double *ret_value)
{
    char storage[NUMBER_BYTES], *end;

    if (text.len >= sizeof storage)
        return false;
    memcpy(storage, text.ptr, text.len);
    storage[text.len] = '\0';
    errno = 0;
    *ret_value = strtod(storage, &end);
    return *end == '\0' && errno != ERANGE && !isnan(*ret_value);
}

/* Equal numbers by their text. */
static int compare_numbers(const void *a, const void *b)
{
    double left = 0, right = 0;

    (void)!read_number(*(const struct text *)a, &left);
    (void)!read_number(*(const struct text *)b, &right);
    return left < right ? -1 : left > right ? 1 : compare_texts(a, b);
}

static bool are_numbers(const struct text *elements, size_t count)
{
    double number;

    for (size_t i = 0; i < count; i++)
        if (!read_number(elements[i], &number))
            return false;
    return true;
}

void cmd_sort(struct call *call)
{
    struct sort sort;
    struct text *elements;
    size_t count;

    if (!read_sort_options(call, &sort))
        return;
    elements = elements_of(call, space_find(call, call->argv[1]), &count);
    if (!elements)
        return;
    if (!sort.is_alpha && !are_numbers(elements, count)) {
        say_error(call, "ERR One or more scores can't be converted into double");
        free(elements);
        return;
    }
    if (count > 0)
        qsort(elements, count, sizeof *elements, sort.is_alpha ? compare_texts : compare_numbers);
    size_t begin = sort.skipped < 0 ? 0 : (uint64_t)sort.skipped < count ? (size_t)sort.skipped : count;
    size_t end = sort.most >= 0 && (uint64_t)sort.most < count - begin ? begin + (size_t)sort.most : count;
    say_array(call, end - begin);
    for (size_t i = begin; i < end; i++)
        say_text(call, elements[sort.is_down ? count - 1 - i : i]);
    free(elements);
}
