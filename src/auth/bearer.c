#include "auth/bearer.h"
#include "bearer_internal.h"

/* RFC 9110 section 5.6.2. */
static const bool IS_TOKEN[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['!'] = true, ['#'] = true, ['$'] = true,
    ['%'] = true,         ['&'] = true,         ['\''] = true,        ['*'] = true, ['+'] = true, ['-'] = true,
    ['.'] = true,         ['^'] = true,         ['_'] = true,         ['`'] = true, ['|'] = true, ['~'] = true,
};
const uint8_t BEARER_TOKEN68[256] = {
    ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1, ['0' ... '9'] = 1, ['-'] = 1, ['.'] = 1,
    ['_'] = 1,         ['~'] = 1,         ['+'] = 1,         ['/'] = 1,
};

static size_t token_span(struct text t)
{
    size_t count = 0;
    while (count < t.len && IS_TOKEN[(unsigned char)t.ptr[count]])
        count++;
    return count;
}

static bool is_token68(struct text t)
{
    while (t.len && t.ptr[t.len - 1] == '=')
        t.len--;
    return t.len && (text_classes(t, BEARER_TOKEN68) & 1);
}

static bool is_printable(struct text t)
{
    for (size_t i = 0; i < t.len; i++) {
        const unsigned char c = (unsigned char)t.ptr[i];
        if ((c < 0x20 && c != '\t') || c >= 0x7f)
            return false;
    }
    return true;
}

enum bearer_result bearer_read(struct text header, struct text *ret_token)
{
    if (!header.ptr)
        return BEARER_ABSENT;
    const struct text value = text_trim(header);
    /* Nearly all are written like this. */
    const bool is_bearer = text_starts_with(value, TEXT("Bearer "));
    const struct text scheme = {value.ptr, is_bearer ? strlen("Bearer") : token_span(value)};
    struct text credentials = text_skip(value, scheme.len);
    if (scheme.len == 0 || (credentials.len && credentials.ptr[0] != ' '))
        return BEARER_MALFORMED;
    while (credentials.len && credentials.ptr[0] == ' ')
        credentials = text_skip(credentials, 1);
    if (!is_bearer && !text_equal_nocase(scheme, TEXT("Bearer")))
        return is_printable(credentials) ? BEARER_OTHER : BEARER_MALFORMED;
    if (!is_token68(credentials))
        return BEARER_MALFORMED;
    *ret_token = credentials;
    return BEARER_TOKEN;
}
