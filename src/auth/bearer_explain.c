/* Apart from bearer.c, which is in the module for nginx too. */
#include "auth/bearer.h"
#include "bearer_internal.h"
#include "core/secret.h"

#define SEND_IT " Send Authorization: Bearer <API_KEY>."

static bool has_any(struct text t, const struct text *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (t.len && memmem(t.ptr, t.len, parts[i].ptr, parts[i].len))
            return true;
    return false;
}

static bool is_quoted(struct text t)
{
    static const struct text QUOTES[] = {
        TEXT("\""),
        TEXT("'"),
        TEXT("`"),
        TEXT("\xe2\x80\x98"),
        TEXT("\xe2\x80\x99"),
        TEXT("\xe2\x80\x9c"),
        TEXT("\xe2\x80\x9d"),
        TEXT("\xc2\xab"),
        TEXT("\xc2\xbb"),
    };

    return has_any(t, QUOTES, sizeof QUOTES / sizeof *QUOTES);
}

/* "$KEY", "${KEY}", "{{key}}", "%KEY%", "<key>", "[key]". */
static bool is_placeholder(struct text t)
{
    const char first = t.len ? t.ptr[0] : '\0', last = t.len ? t.ptr[t.len - 1] : '\0';

    return first == '$' || first == '{' || first == '<' || first == '[' || (t.len > 1 && first == '%' && last == '%');
}

/* The code point at the beginning of t; for what is not UTF-8, the byte. */
static uint32_t first_code_point(struct text t)
{
    const size_t bytes = text_utf8_length(t);
    uint32_t code = (uint8_t)t.ptr[0];

    if (bytes > 1)
        code &= 0x7fU >> bytes;
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((uint8_t)t.ptr[i] & 0x3f);
    return code;
}

static bool is_expected(char c, bool is_token)
{
    return is_token ? BEARER_TOKEN68[(unsigned char)c] != 0 : (c >= ' ' && c < 0x7f);
}

/* is_token: t is what stands after Bearer; else it is the whole value. */
static void name_character(struct text t, bool is_token, struct buf *out)
{
    size_t position = 1;

    while (t.len && is_expected(t.ptr[0], is_token)) {
        t = text_skip(t, 1);
        position++;
    }
    if (t.len == 0)
        buf_append_str(out, "Authorization does not begin with the word Bearer." SEND_IT);
    else
        buf_printf(out, "Authorization has a character that no key has: U+%04X, at position %zu of %s.",
                   (unsigned)first_code_point(t), position, is_token ? "the token" : "its value");
}

void bearer_explain(struct text header, struct buf *out)
{
    const struct text value = text_trim(header), word = TEXT("Bearer");
    const bool is_bearer = value.len >= word.len && text_equal_nocase((struct text){value.ptr, word.len}, word);
    const struct text token = is_bearer ? text_trim(text_skip(value, word.len)) : value;

    if (value.len == 0)
        buf_append_str(out, "Authorization is empty: is the variable set?" SEND_IT);
    else if (token.len == 0)
        buf_append_str(out, "Authorization has no token after Bearer: is the variable set?");
    else if (is_quoted(token))
        buf_append_str(out, "Authorization has quotes around the key: send it without them.");
    else if (is_placeholder(token) && secret_within(token))
        buf_append_str(out, "Authorization has brackets around the key: send it without them.");
    else if (is_placeholder(token))
        buf_append_str(out, "Authorization has a variable or placeholder that was not replaced by the key.");
    else if (is_bearer && token.len > word.len && text_equal_nocase((struct text){token.ptr, word.len}, word))
        buf_append_str(out, "Authorization has the word Bearer twice.");
    else
        name_character(token, is_bearer, out);
}
