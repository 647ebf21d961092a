/* PROXY headers, as bytes and in front of a connection's first request. */
#include "base/metrics.h"
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"
#include "tls_peer.h"

#include "http/peer_internal.h"
#include "http/proxy_internal.h"

#include <criterion/criterion.h>
#include <string.h>

static void skip_over_tls(void)
{
    tls_peer_skip("test_tls.c has the header before a handshake");
}

TestSuite(http_proxy, .init = skip_over_tls, .fini = leak_guard);

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

/* In front of requests. */

#define ABOUT "GET /about HTTP/1.1\r\nHost: t\r\n\r\n"

static bool is_trusted = true;

static bool trusts_proxy(struct text address, void *arg)
{
    cr_assert_eq(arg, &fixture);
    cr_assert(text_equal(address, TEXT("127.0.0.1")));
    return is_trusted;
}

static struct http_settings proxy_settings(void)
{
    struct http_settings settings = fixture_settings();

    settings.trusts_proxy = trusts_proxy;
    return settings;
}

static int64_t refused(void)
{
    int64_t sum = 0;

    for (int m = METRIC_PROXY_UNTRUSTED; m <= METRIC_PROXY_INCOMPLETE; m++)
        sum += metric_values[m];
    return sum;
}

static void send_in_pieces(struct text bytes, size_t piece_bytes)
{
    while (bytes.len > 0) {
        size_t count = bytes.len < piece_bytes ? bytes.len : piece_bytes;

        peer_send(&peer, bytes.ptr, count);
        test_loop_for(&fixture.loop, 1);
        bytes = text_skip(bytes, count);
    }
}

Test(http_proxy, the_client_is_who_the_header_names)
{
    static const struct {
        struct text header;
        const char *peer;
    } CASES[] = {
        {TEXT(TCP_IPV4), "|203.0.113.9|0"},
        {TEXT(SIGNATURE "\x21\x21\0\x24" IPV6_SOURCE IPV6_TARGET), "|2001:db8::9|0"},
        {TEXT(LOCAL), "|127.0.0.1|0"},
        {TEXT(SIGNATURE "\x21\0\0\0"), "|127.0.0.1|0"},
    };
    static const size_t PIECES[] = {SIZE_MAX, 13, 1};
    struct http_settings settings = proxy_settings();
    char sent[256];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES * 3; i++) {
        struct text header = CASES[i / 3].header;

        start_with(&settings);
        memcpy(sent, header.ptr, header.len);
        memcpy(sent + header.len, ABOUT, sizeof ABOUT - 1);
        send_in_pieces((struct text){sent, header.len + sizeof ABOUT - 1}, PIECES[i % 3]);
        cr_assert(peer_gets(&peer, CASES[i / 3].peer), "case %zu: %s", i, peer.input);
        peer_send_str(&peer, ABOUT ABOUT);
        cr_assert(peer_gets_count(&peer, CASES[i / 3].peer, 3), "case %zu, later: %s", i, peer.input);
        finish();
    }
    cr_expect_eq(refused(), 0);
}

Test(http_proxy, anything_else_ends_the_connection_at_once_and_in_silence)
{
    struct http_settings settings = proxy_settings();

    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        start_with(&settings);
        peer_send(&peer, REFUSED[i].input.ptr, REFUSED[i].input.len);
        cr_assert(peer_is_ended(&peer), "%s", REFUSED[i].what);
        cr_expect_eq(peer.bytes, 0, "%s: %s", REFUSED[i].what, peer.input);
        cr_expect_eq(fixture.handled, 0);
        cr_expect_eq(refused(), (int64_t)i + 1, "%s", REFUSED[i].what);
        finish();
    }
    cr_expect_eq(metric_values[METRIC_PROXY_VERSION_1], 1);
    cr_expect_eq(metric_values[METRIC_PROXY_MISSING], 3);
    cr_expect_eq(metric_values[METRIC_PROXY_MALFORMED], 8);
    cr_expect_eq(metric_values[METRIC_PROXY_TOO_LONG], 2);
}

Test(http_proxy, a_header_that_ends_early_is_refused_and_a_probe_is_not)
{
    struct http_settings settings = proxy_settings();

    for (int64_t counted = 0; counted < 2; counted++) {
        start_with(&settings);
        if (counted > 0)
            peer_send(&peer, TCP_IPV4, sizeof TCP_IPV4 - 2);
        peer_half_close(&peer);
        cr_assert(peer_is_ended(&peer));
        cr_expect_eq(peer.bytes, 0);
        cr_expect_eq(refused(), counted);
        finish();
    }
    cr_expect_eq(metric_values[METRIC_PROXY_INCOMPLETE], 1);
}

Test(http_proxy, a_header_has_one_deadline_from_the_connections_beginning)
{
    struct http_settings settings = proxy_settings();

    /* It takes longer to send the header. */
    settings.limits.head_timeout_ms = 1500;
    for (size_t sent = 0; sent < 2; sent++) {
        start_with(&settings);
        for (size_t i = 0; i < 27 && !peer.is_ended; i++) {
            if (sent > 0)
                peer_send(&peer, &(TCP_IPV4)[i], 1);
            test_loop_for(&fixture.loop, 100);
        }
        cr_assert(peer.is_ended);
        cr_expect_eq(peer.bytes, 0);
        finish();
    }
    cr_expect_eq(metric_values[METRIC_PROXY_MISSING], 1);
    cr_expect_eq(metric_values[METRIC_PROXY_INCOMPLETE], 1);
}

/* Nor does it cost a trusted one its place. */
Test(http_proxy, a_header_from_elsewhere_is_not_even_read)
{
    struct http_settings settings = proxy_settings();
    struct peer stranger;

    settings.limits.connections_max = 1;
    start_with(&settings);
    peer_send(&peer, LOCAL ABOUT, sizeof LOCAL ABOUT - 1);
    cr_assert(peer_gets(&peer, "|127.0.0.1|0"));
    is_trusted = false;
    peer_connect(&stranger, &fixture);
    cr_assert(peer_is_ended(&stranger));
    cr_expect_eq(stranger.bytes, 0);
    cr_expect_eq(metric_values[METRIC_PROXY_UNTRUSTED], 1);
    cr_expect_eq(refused(), 1);
    peer_close(&stranger);
    peer_send_str(&peer, ABOUT);
    cr_assert(peer_gets_count(&peer, "|127.0.0.1|0", 2), "the other one had to go");
    is_trusted = true;
    finish();
}

Test(http_proxy, a_drain_does_not_wait_for_headers)
{
    struct http_settings settings = proxy_settings();

    start_with(&settings);
    cr_assert(fixture_until_connections(&fixture, 1));
    http_server_wane(fixture.server, 20);
    cr_assert(peer_is_ended(&peer));
    cr_expect_eq(refused(), 0);
    finish();
}

Test(http_proxy, a_reset_or_the_servers_end_within_a_header_leaves_nothing)
{
    struct http_settings settings = proxy_settings();

    for (int is_reset = 0; is_reset < 2; is_reset++) {
        start_with(&settings);
        peer_send(&peer, TCP_IPV4, 20);
        cr_assert(fixture_until_connections(&fixture, 1));
        if (is_reset) {
            peer_reset(&peer);
            cr_assert(fixture_until_connections(&fixture, 0));
        }
        fixture_close(&fixture);
        peer_close(&peer);
        cr_assert(test_loop_finish(&fixture.loop));
    }
}

Test(http_proxy, a_connection_too_many_is_told_so)
{
    struct http_settings settings = proxy_settings();
    struct peer more;

    settings.limits.connections_max = 1;
    start_with(&settings);
    cr_assert(fixture_until_connections(&fixture, 1));
    peer_connect(&more, &fixture);
    peer_send(&more, TCP_IPV4 ABOUT, sizeof TCP_IPV4 ABOUT - 1);
    cr_assert(peer_gets(&more, "503 Service Unavailable"));
    cr_expect_eq(fixture.handled, 0);
    peer_close(&more);
    finish();
}

Test(http_proxy, other_listeners_refuse_a_header_as_any_other_garbage)
{
    start();
    peer_send(&peer, TCP_IPV4 ABOUT, sizeof TCP_IPV4 ABOUT - 1);
    cr_assert(peer_gets(&peer, "400 Bad Request"));
    cr_assert(peer_is_ended(&peer));
    cr_expect_eq(fixture.handled, 0);
    finish();
}
