#include "redis/reply.h"
#include <string.h>

bool reply_text(const struct redis_reply *reply, struct text *ret_text)
{
    if (!reply || (reply->type != REPLY_STRING && reply->type != REPLY_STATUS))
        return false;
    *ret_text = reply->text;
    return true;
}

bool reply_text_or_nil(const struct redis_reply *reply, struct text *ret_text)
{
    if (reply && reply->type == REPLY_NIL) {
        *ret_text = (struct text){NULL, 0};
        return true;
    }
    return reply_text(reply, ret_text);
}

bool reply_chars(const struct redis_reply *reply, char *ret_chars, size_t size)
{
    struct text t;

    if (!reply_text(reply, &t) || t.len >= size || memchr(t.ptr, '\0', t.len))
        return false;
    memcpy(ret_chars, t.ptr, t.len);
    ret_chars[t.len] = '\0';
    return true;
}

bool reply_integer(const struct redis_reply *reply, int64_t *ret_value)
{
    struct text digits;
    uint64_t magnitude;

    if (reply && reply->type == REPLY_INTEGER) {
        *ret_value = reply->integer;
        return true;
    }
    if (!reply_text(reply, &digits))
        return false;

    bool is_negative = text_starts_with(digits, TEXT("-"));
    if (!text_to_u64(text_skip(digits, is_negative), INT64_MAX, &magnitude) || (is_negative && magnitude == 0))
        return false;
    *ret_value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

bool reply_count(const struct redis_reply *reply, uint64_t *ret_count)
{
    int64_t count;

    if (!reply_integer(reply, &count) || count < 0)
        return false;
    *ret_count = (uint64_t)count;
    return true;
}

const struct redis_reply *reply_at(const struct redis_reply *reply, size_t index)
{
    if (!reply || reply->type != REPLY_ARRAY || index >= reply->count)
        return NULL;
    return reply->items[index];
}

const struct redis_reply *reply_named(const struct redis_reply *reply, struct text name)
{
    struct text found;

    for (size_t i = 0; reply_text(reply_at(reply, i), &found); i += 2)
        if (text_equal(found, name))
            return reply_at(reply, i + 1);
    return NULL;
}

struct text reply_named_text(const struct redis_reply *reply, struct text name)
{
    struct text value;

    return reply_text(reply_named(reply, name), &value) ? value : (struct text){0};
}

struct text reply_info_value(struct text info, struct text name)
{
    struct text line, value;

    while (text_next(&info, '\n', &line)) {
        value = line;
        if (!text_next(&value, ':', &line) || !value.ptr || !text_equal(line, name))
            continue;
        while (value.len && value.ptr[value.len - 1] == '\r')
            value.len--;
        return value;
    }
    return (struct text){NULL, 0};
}

struct text reply_error_kind(const struct redis_reply *reply)
{
    struct text rest, word;

    if (!reply || reply->type != REPLY_ERROR)
        return (struct text){NULL, 0};
    rest = reply->text;
    return text_next(&rest, ' ', &word) ? word : reply->text;
}

struct text reply_error_shown(const struct redis_reply *reply)
{
    return reply && reply->type == REPLY_ERROR ? reply_caught_error_shown(reply->text) : (struct text){0};
}

struct text reply_caught_error_shown(struct text error)
{
    static const char ARGUMENTS[] = ", with args";
    const char *quoted = memmem(error.ptr, error.len, ARGUMENTS, sizeof ARGUMENTS - 1);

    error.len = quoted ? (size_t)(quoted - error.ptr) : error.len;
    return error;
}
