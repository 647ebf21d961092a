#include "http/cookie.h"

#include <string.h>

enum cookie_result cookie_find(struct text header, struct text name, struct text *ret_value)
{
    enum cookie_result result = COOKIE_ABSENT;
    struct text part, value = {NULL, 0};

    while (text_next(&header, ';', &part)) {
        const char *mark;

        part = text_trim(part);
        mark = part.len > 0 ? memchr(part.ptr, '=', part.len) : NULL;
        if (!mark || !text_equal((struct text){part.ptr, (size_t)(mark - part.ptr)}, name))
            continue;
        if (result != COOKIE_ABSENT)
            return COOKIE_SEVERAL;
        result = COOKIE_ONE;
        value = text_skip(part, (size_t)(mark + 1 - part.ptr));
    }
    if (result == COOKIE_ONE)
        *ret_value = value;
    return result;
}

void cookie_print(struct text name, struct text value, int64_t max_age_s, struct buf *out)
{
    buf_append_text(out, name);
    buf_append_char(out, '=');
    buf_append_text(out, value);
    buf_append_str(out, "; Path=/; Secure; HttpOnly; SameSite=Strict");
    if (max_age_s >= 0) {
        buf_append_str(out, "; Max-Age=");
        buf_append_u64(out, (uint64_t)max_age_s);
    }
}
