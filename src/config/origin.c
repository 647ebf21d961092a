#include "config/settings.h"

#define HTTPS TEXT("https://")
#define HTTP TEXT("http://")

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

static bool is_v6_char(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

static size_t span(struct text t, bool (*is_member)(char c))
{
    size_t length = 0;

    while (length < t.len && is_member(t.ptr[length]))
        length++;
    return length;
}

/* Takes the host, a name or a bracketed address, off *rest. */
static bool take_host(struct text *rest)
{
    size_t length;

    if (text_starts_with(*rest, TEXT("["))) {
        length = 1 + span(text_skip(*rest, 1), is_v6_char);
        if (length < 3 || length >= rest->len || rest->ptr[length] != ']')
            return false;
        length++;
    } else {
        length = span(*rest, is_host_char);
    }
    *rest = text_skip(*rest, length);
    return length > 0;
}

static bool port_is_canonical(struct text port, bool is_https)
{
    uint64_t number;

    return text_to_u64(port, 65535, &number) && number > 0 && number != (is_https ? 443 : 80);
}

bool settings_origin_is_https(const char *origin)
{
    return text_starts_with(text_of(origin), HTTPS);
}

bool settings_validate_origin(const char *origin, struct buf *ret_why)
{
    struct text rest = text_of(origin);
    bool is_https = text_starts_with(rest, HTTPS);
    bool fits = is_https || text_starts_with(rest, HTTP);

    if (fits) {
        rest = text_skip(rest, is_https ? HTTPS.len : HTTP.len);
        fits = take_host(&rest);
    }
    if (fits && rest.len > 0)
        fits = rest.ptr[0] == ':' && port_is_canonical(text_skip(rest, 1), is_https);
    if (!fits)
        buf_printf(
            ret_why,
            "--public-origin '%s' is not an origin: give scheme://host or scheme://host:port in lower case, without "
            "a path and without the scheme's own port, as in https://console.example.org",
            origin);
    return fits;
}
