#include "commands.h"
#include "internal.h"

#include <string.h>

static void push(struct call *call, bool to_front)
{
    struct value *list;

    if (!space_write(call, call->argv[1], VALUE_LIST, &list))
        return;
    for (size_t i = 2; i < call->argc; i++) {
        list->items = mem_grow(list->items, list->item_count, &list->item_room, sizeof *list->items);
        if (to_front)
            memmove(list->items + 1, list->items, list->item_count * sizeof *list->items);
        list->items[to_front ? 0 : list->item_count] = text_own(call->argv[i]);
        list->item_count++;
    }
    say_integer(call, (int64_t)list->item_count);
}

void cmd_lpush(struct call *call)
{
    push(call, true);
}

void cmd_rpush(struct call *call)
{
    push(call, false);
}

void cmd_llen(struct call *call)
{
    struct value *list;

    if (space_read(call, call->argv[1], VALUE_LIST, &list))
        say_integer(call, list ? (int64_t)list->item_count : 0);
}

/* The range of the arguments, the end exclusive. */
static bool read_range(struct call *call, struct value **ret_list, size_t *ret_begin, size_t *ret_end)
{
    int64_t first, last, count;

    if (!arg_i64(call, 2, &first) || !arg_i64(call, 3, &last) || !space_read(call, call->argv[1], VALUE_LIST, ret_list))
        return false;
    count = *ret_list ? (int64_t)(*ret_list)->item_count : 0;
    first = first < 0 ? (first + count < 0 ? 0 : first + count) : first;
    last = last < 0 ? last + count : last >= count ? count - 1 : last;
    bool is_empty = first > last || first >= count;
    *ret_begin = is_empty ? 0 : (size_t)first;
    *ret_end = is_empty ? 0 : (size_t)last + 1;
    return true;
}

void cmd_lrange(struct call *call)
{
    struct value *list;
    size_t begin, end;

    if (!read_range(call, &list, &begin, &end))
        return;
    say_array(call, end - begin);
    for (size_t i = begin; i < end; i++)
        say_text(call, list->items[i]);
}

void cmd_ltrim(struct call *call)
{
    struct value *list;
    size_t begin, end;

    if (!read_range(call, &list, &begin, &end))
        return;
    for (size_t i = 0; list && i < list->item_count; i++)
        if (i < begin || i >= end)
            text_release(list->items[i]);
    if (list) {
        memmove(list->items, list->items + begin, (end - begin) * sizeof *list->items);
        list->item_count = end - begin;
    }
    space_prune(call, call->argv[1], list);
    say_ok(call);
}
