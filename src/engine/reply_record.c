#include "engine/reply_record.h"
#include "engine/verb.h"
#include <string.h>

bool value_chars(const struct redis_reply *value, void *ret, size_t size)
{
    return reply_chars(value, ret, size);
}

bool value_bytes(const struct redis_reply *value, void *ret, size_t size)
{
    struct text bytes;

    if (!reply_text(value, &bytes) || bytes.len != size)
        return false;
    memcpy(ret, bytes.ptr, size);
    return true;
}

bool value_text(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    return reply_text(value, ret);
}

bool value_time(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    return reply_time(value, ret);
}

bool value_count(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    int64_t *count = ret;

    return reply_integer(value, count) && *count >= 0;
}

bool value_integer(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    return reply_integer(value, ret);
}

bool value_flag(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    return reply_flag(value, ret);
}

bool value_id(const struct redis_reply *value, void *ret, size_t kind)
{
    return reply_id(value, (enum id_kind)kind, ret);
}

bool reply_record(const struct redis_reply *reply, const struct reply_field *fields, size_t count, void *ret_record)
{
    for (size_t i = 0; i < count; i++) {
        const struct redis_reply *value = reply_named(reply, fields[i].name);

        if (value ? !fields[i].read(value, (char *)ret_record + fields[i].offset, fields[i].size)
                  : !fields[i].is_optional)
            return false;
    }
    return reply && reply->type == REPLY_ARRAY;
}
