#include "media_type_internal.h"

enum { CHARSET_MAX_BYTES = 8 };

/* Takes everything before the next ';' that is not within quotes. False: value was exhausted. */
static bool take_part(struct text *value, struct text *ret_part)
{
    size_t len = 0;
    bool is_quoted = false;

    if (!value->ptr)
        return false;
    for (; len < value->len && (is_quoted || value->ptr[len] != ';'); len++) {
        if (value->ptr[len] == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && value->ptr[len] == '\\')
            len += len + 1 < value->len;
    }
    *ret_part = text_trim((struct text){value->ptr, len});
    *value = len < value->len ? text_skip(*value, len + 1) : (struct text){0};
    return true;
}

static bool is_quoted(struct text t, char quote)
{
    return t.len >= 2 && t.ptr[0] == quote && t.ptr[t.len - 1] == quote;
}

/* Single quotes are no syntax, but some clients write them. */
static bool is_utf8(struct text charset)
{
    struct buf out = BUF_FIXED(CHARSET_MAX_BYTES);

    if (is_quoted(charset, '"') || is_quoted(charset, '\''))
        charset = text_trim((struct text){charset.ptr + 1, charset.len - 2});
    for (size_t i = 0; i < charset.len; i++)
        if (charset.ptr[i] != '\\')
            buf_append_char(&out, charset.ptr[i]);
    return !out.failed &&
           (text_equal_nocase(buf_text(&out), TEXT("utf-8")) || text_equal_nocase(buf_text(&out), TEXT("utf8")));
}

enum media_fit media_type_judge(struct text value, struct text type, struct text *ret_charset)
{
    struct text part, name;

    if (!take_part(&value, &part) || !text_equal_nocase(part, type))
        return MEDIA_OTHER;
    while (take_part(&value, &part)) {
        struct text rest = part;

        if (!text_next(&rest, '=', &name) || !text_equal_nocase(text_trim(name), TEXT("charset")))
            continue;
        *ret_charset = text_trim(rest);
        if (!is_utf8(*ret_charset))
            return MEDIA_CHARSET;
    }
    return MEDIA_FITS;
}
