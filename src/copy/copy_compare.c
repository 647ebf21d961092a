/* Compares the records of a portion at both sides: first the bytes. Where they differ, the elements: of a hash or set
 * in any order. */
#include "copy_portion.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENT_MAX_BYTES = 64 * 1024 * 1024 };

static copy_step types_ask, elements_read, elements_compare;

/* It was there when it was read. */
static bool may_be_gone(const struct copy_item *item)
{
    return item->expires_ms > 0;
}

static void on_read_back(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;
    struct text payload;

    if (reply->type == REPLY_NIL && may_be_gone(item))
        return;
    if (!reply_text(reply, &payload))
        copy_fail(copy, "The target has lost the record %.*s.", TEXT_ARG(item->name));
    else
        item->differs = !text_equal(payload, item->payload);
}

void copy_compare(struct store_copy *copy, copy_step *then)
{
    copy->portion->compared = then;
    for (size_t i = 0; i < copy->portion->count; i++) {
        struct copy_item *item = &copy->portion->items[i];

        if (item->is_there)
            copy_read(&copy->to, item->to, "DUMP", "", item->name, on_read_back, item);
    }
    copy_then(copy, types_ask);
}

static void on_type(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;

    if (!reply_text(reply, &item->type))
        copy_malformed(&copy->to, "TYPE");
    item->type = copy_keep(copy, item->type);
    if (text_equal(item->type, TEXT("none")) && may_be_gone(item))
        item->differs = false;
}

static void types_ask(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++) {
        struct copy_item *item = &copy->portion->items[i];

        if (item->differs)
            copy_read(&copy->to, item->to, "TYPE", "", item->name, on_type, item);
    }
    copy_then(copy, elements_read);
}

static const struct copy_reading {
    const char *type, *command;
    const char *range[3];
    size_t range_count;
    size_t group; /* replies that make one element; 0: the order counts */
} READINGS[] = {
    {"string", "GET", {0}, 0, 0},          {"hash", "HGETALL", {0}, 0, 2},
    {"set", "SMEMBERS", {0}, 0, 1},        {"zset", "ZRANGE", {"0", "-1", "WITHSCORES"}, 3, 2},
    {"list", "LRANGE", {"0", "-1"}, 2, 0}, {"stream", "XRANGE", {"-", "+"}, 2, 0},
};

static const struct copy_reading *reading_of(struct text type)
{
    for (size_t i = 0; i < sizeof READINGS / sizeof *READINGS; i++)
        if (text_equal(type, text_of(READINGS[i].type)))
            return &READINGS[i];
    return NULL;
}

/* Each value follows its length, so no two lists of values print the same. The reader bounds the depth. */
static void print_value(struct buf *out, const struct redis_reply *reply)
{
    buf_printf(out, "%d:%zu:", (int)reply->type, reply->type == REPLY_ARRAY ? reply->count : reply->text.len);
    buf_append_text(out, reply->text);
    for (size_t i = 0; reply->type == REPLY_ARRAY && i < reply->count; i++)
        print_value(out, reply->items[i]);
}

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;
    int order = memcmp(left->ptr, right->ptr, left->len < right->len ? left->len : right->len);

    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

static void keep_elements(struct store_copy *copy, const struct copy_item *item, const struct redis_reply *reply,
                          struct elements *ret_elements)
{
    size_t group = reading_of(item->type)->group;
    size_t items = reply->type == REPLY_ARRAY ? reply->count : 0;
    size_t count = group > 0 ? items / group : items > 0 || reply->type == REPLY_STRING;
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ELEMENT_MAX_BYTES);

    ret_elements->texts = arena_alloc(&copy->portion->arena, (count + 1) * sizeof *ret_elements->texts);
    ret_elements->count = count;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&out);
        for (size_t j = 0; j < group; j++)
            print_value(&out, reply->items[i * group + j]);
        if (group == 0)
            print_value(&out, reply);
        ret_elements->texts[i] = copy_keep(copy, buf_text(&out));
    }
    qsort(ret_elements->texts, count, sizeof *ret_elements->texts, compare_texts);
    if (out.failed)
        copy_fail(copy, "The record %.*s is too large to be compared.", TEXT_ARG(item->name));
}

static void on_source_elements(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;

    keep_elements(copy, item, reply, &item->elements[0]);
}

static void on_target_elements(struct store_copy *copy, void *arg, const struct redis_reply *reply)
{
    struct copy_item *item = arg;

    keep_elements(copy, item, reply, &item->elements[1]);
}

static void elements_ask(struct copy_side *side, unsigned partition, struct copy_item *item, copy_answered *answered)
{
    const struct copy_reading *reading = reading_of(item->type);
    struct text range[sizeof reading->range / sizeof *reading->range];

    for (size_t i = 0; i < reading->range_count; i++)
        range[i] = text_of(reading->range[i]);
    copy_call_on(side, partition, reading->command, "", item->name, reading->range_count, range, answered, item);
}

static void elements_read(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++) {
        struct copy_item *item = &copy->portion->items[i];

        if (!item->differs)
            continue;
        if (!reading_of(item->type)) {
            copy_fail(copy, "The record %.*s differs at the target.", TEXT_ARG(item->name));
            break;
        }
        elements_ask(&copy->from, copy->portion->partition, item, on_source_elements);
        elements_ask(&copy->to, item->to, item, on_target_elements);
    }
    copy_then(copy, elements_compare);
}

static bool same_elements(const struct elements *a, const struct elements *b)
{
    bool is_same = a->count == b->count;

    for (size_t i = 0; is_same && i < a->count; i++)
        is_same = text_equal(a->texts[i], b->texts[i]);
    return is_same;
}

static void elements_compare(struct store_copy *copy)
{
    for (size_t i = 0; i < copy->portion->count; i++) {
        const struct copy_item *item = &copy->portion->items[i];

        if (may_be_gone(item) && (item->elements[0].count == 0 || item->elements[1].count == 0))
            continue;
        if (!same_elements(&item->elements[0], &item->elements[1]))
            copy_fail(copy, "The record %.*s differs at the target: does anything still change the source?",
                      TEXT_ARG(item->name));
    }
    copy_then(copy, copy->portion->compared);
}
