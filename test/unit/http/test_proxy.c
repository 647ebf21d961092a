/* PROXY headers as bytes. */
#include "leak_guard.h"
#include "http/peer_internal.h"
#include "http/proxy_internal.h"

#include <criterion/criterion.h>

TestSuite(http_proxy, .fini = leak_guard);

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
/* From 203.0.113.9 and 2001:db8::9. */
#define IPV4 "\xcb\0\x71\x09\xc6\x33\x64\x01\x30\x39\0\x50"
#define IPV6_SOURCE "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09"
#define IPV6_MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff\xcb\0\x71\x09"
#define IPV6_TARGET "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x30\x39\0\x50"
#define TCP_IPV4 SIGNATURE "\x21\x11\0\x0c" IPV4
#define LOCAL SIGNATURE "\x20\0\0\0"

static const struct {
    const char *what;
    struct text input;
    size_t bytes;
    const char *source; /* NULL: the connection's own counts */
} WHOLE[] = {
    {"TCP over IPv4", TEXT(TCP_IPV4), 28, "203.0.113.9"},
    {"a request follows", TEXT(TCP_IPV4 "GET / HTTP/1.1\r\n"), 28, "203.0.113.9"},
    {"a TLV follows", TEXT(SIGNATURE "\x21\x11\0\x11" IPV4 "\x04\0\x02zz"), 33, "203.0.113.9"},
    {"a TLV that is cut", TEXT(SIGNATURE "\x21\x11\0\x0e" IPV4 "\x04\xff"), 30, "203.0.113.9"},
    {"TCP over IPv6", TEXT(SIGNATURE "\x21\x21\0\x24" IPV6_SOURCE IPV6_TARGET), 52, "2001:db8::9"},
    {"a mapped address", TEXT(SIGNATURE "\x21\x21\0\x24" IPV6_MAPPED IPV6_TARGET), 52, "203.0.113.9"},
    {"LOCAL", TEXT(LOCAL), 16, NULL},
    {"LOCAL, with addresses", TEXT(SIGNATURE "\x20\x11\0\x0c" IPV4), 28, NULL},
    {"LOCAL, of no known family", TEXT(SIGNATURE "\x20\xff\0\x01z"), 17, NULL},
    {"unspecified", TEXT(SIGNATURE "\x21\0\0\0"), 16, NULL},
    {"unspecified, with bytes", TEXT(SIGNATURE "\x21\0\0\x03zzz"), 19, NULL},
    {"of no transport", TEXT(SIGNATURE "\x21\x10\0\x0c" IPV4), 28, NULL},
    {"of no family", TEXT(SIGNATURE "\x21\x01\0\0"), 16, NULL},
    {"UDP", TEXT(SIGNATURE "\x21\x12\0\x0c" IPV4), 28, NULL},
    {"Unix", TEXT(SIGNATURE "\x21\x31\0\x02zz"), 18, NULL},
};

Test(http_proxy, a_header_is_whole_with_its_last_byte)
{
    for (size_t i = 0; i < sizeof WHOLE / sizeof *WHOLE; i++) {
        struct proxy_header header = {0};
        enum proxy_error error;
        char source[INET6_ADDRSTRLEN] = "own";

        for (size_t bytes = 0; bytes < WHOLE[i].bytes; bytes++)
            cr_expect_eq(proxy_read((struct text){WHOLE[i].input.ptr, bytes}, &header, &error), PROXY_PARTIAL,
                         "%s: %zu bytes", WHOLE[i].what, bytes);
        cr_assert_eq(proxy_read(WHOLE[i].input, &header, &error), PROXY_WHOLE, "%s", WHOLE[i].what);
        cr_expect_eq(header.bytes, WHOLE[i].bytes, "%s: %zu", WHOLE[i].what, header.bytes);
        if (header.source.len > 0)
            peer_print_bytes(header.source, source);
        cr_expect_str_eq(source, WHOLE[i].source ? WHOLE[i].source : "own", "%s: %s", WHOLE[i].what, source);
    }
}

static const struct {
    const char *what;
    struct text input;
    enum proxy_error error;
    size_t after; /* the bytes after which it is refused */
} REFUSED[] = {
    {"version 1", TEXT("PROXY TCP4 203.0.113.9 198.51.100.1 12345 80\r\n"), PROXY_VERSION_1, 1},
    {"a request", TEXT("GET / HTTP/1.1\r\n"), PROXY_MISSING, 1},
    {"an empty line", TEXT("\r\nGET / HTTP/1.1\r\n"), PROXY_MISSING, 3},
    {"another signature", TEXT("\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c" IPV4), PROXY_MISSING, 12},
    {"of version 1, binary", TEXT(SIGNATURE "\x11\x11\0\x0c" IPV4), PROXY_MALFORMED, 16},
    {"of version 3", TEXT(SIGNATURE "\x31\x11\0\x0c" IPV4), PROXY_MALFORMED, 16},
    {"LOCAL, of version 3", TEXT(SIGNATURE "\x30\0\0\0"), PROXY_MALFORMED, 16},
    {"another command", TEXT(SIGNATURE "\x22\x11\0\x0c" IPV4), PROXY_MALFORMED, 16},
    {"another family", TEXT(SIGNATURE "\x21\x41\0\x0c" IPV4), PROXY_MALFORMED, 16},
    {"another transport", TEXT(SIGNATURE "\x21\x13\0\x0c" IPV4), PROXY_MALFORMED, 16},
    {"IPv4, cut", TEXT(SIGNATURE "\x21\x11\0\x0b" IPV4), PROXY_MALFORMED, 16},
    {"IPv6, cut", TEXT(SIGNATURE "\x21\x21\0\x23" IPV6_SOURCE IPV6_TARGET), PROXY_MALFORMED, 16},
    {"a byte too long", TEXT(SIGNATURE "\x21\x11\x0f\xf1" IPV4), PROXY_TOO_LONG, 16},
    {"LOCAL, too long", TEXT(SIGNATURE "\x20\0\xff\xff"), PROXY_TOO_LONG, 16},
};

Test(http_proxy, what_is_no_header_is_refused_as_soon_as_it_shows)
{
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct proxy_header header;
        enum proxy_error error;

        for (size_t bytes = 0; bytes <= REFUSED[i].input.len; bytes++)
            cr_expect_eq(proxy_read((struct text){REFUSED[i].input.ptr, bytes}, &header, &error),
                         bytes < REFUSED[i].after ? PROXY_PARTIAL : PROXY_REFUSED, "%s: %zu bytes", REFUSED[i].what,
                         bytes);
        cr_expect_eq(error, REFUSED[i].error, "%s: %d", REFUSED[i].what, (int)error);
    }
}

Test(http_proxy, the_longest_header_is_read)
{
    static char input[PROXY_HEADER_MAX_BYTES] = SIGNATURE "\x21\x11\x0f\xf0" IPV4;
    struct proxy_header header;
    enum proxy_error error;

    cr_expect_eq(proxy_read((struct text){input, sizeof input - 1}, &header, &error), PROXY_PARTIAL);
    cr_expect_eq(proxy_read((struct text){input, sizeof input}, &header, &error), PROXY_WHOLE);
    cr_expect_eq(header.bytes, sizeof input);
}
