/* The same bytes, sent whole or one at a time, must be understood in the same way. */
#include "leak_guard.h"
#include "server_fixture.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(http_pieces, .fini = leak_guard);

#define HELLO "GET /hello?hi HTTP/1.1\r\nHost: t\r\n\r\n"

static const char *const CONVERSATIONS[] = {
    HELLO,
    HELLO HELLO "HEAD /hello?x HTTP/1.1\r\nHost: t\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello" HELLO,
    "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nX: y\r\n\r\n" HELLO,
    "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n" HELLO,
    "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n" HELLO,
    "POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 35\r\n\r\n" HELLO HELLO,
    "POST /unread HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX" HELLO,
    "GET /later?a HTTP/1.1\r\nHost: t\r\n\r\n" HELLO "GET /none HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /hello HTTP/1.1\r\nHost: t\r\nX: a\rb\r\n\r\n" HELLO,
    "GET /hello HTTP/1.1\r\nHost: t\r\n X: a\r\n\r\n" HELLO,
    "GET /hello HTTP/1.1\nHost: t\r\n\r\n" HELLO,
    "\r\n" HELLO,
    "BREW /hello HTTP/1.1\r\nHost: t\r\n\r\n" HELLO,
    "CONNECT t:1 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO,
    "GET /hello HTTP/2.0\r\nHost: t\r\n\r\n" HELLO,
    "GET /hello HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" HELLO,
    "GET /hello HTTP/1.0\r\n\r\n" HELLO,
    HELLO "GET /hel",
};

/* Copies a response without the fields that always differ: Date and X-Request-Id. */
static void print_comparable(const char *input, struct buf *out)
{
    static const struct text VARYING[] = {TEXT("Date: "), TEXT("X-Request-Id: ")};
    struct text rest = text_of(input);

    while (rest.len > 0) {
        size_t skipped = 0;

        for (size_t i = 0; i < sizeof VARYING / sizeof VARYING[0]; i++) {
            if (text_starts_with(rest, VARYING[i]))
                skipped = VARYING[i].len + strcspn(rest.ptr + VARYING[i].len, "\r\"");
        }
        if (skipped == 0)
            buf_append_char(out, rest.ptr[0]);
        rest = text_skip(rest, skipped > 0 ? skipped : 1);
    }
}

static void converse(const char *sent, size_t piece_bytes, struct buf *out)
{
    struct http_settings settings = fixture_settings();
    struct fixture fixture;
    struct peer peer;
    size_t bytes = strlen(sent);

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    peer_connect(&peer, &fixture);
    for (size_t at = 0; at < bytes; at += piece_bytes) {
        peer_send(&peer, sent + at, bytes - at < piece_bytes ? bytes - at : piece_bytes);
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
    }
    peer_half_close(&peer);
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    print_comparable(peer.input, out);
    buf_printf(out, "%u handled", fixture.handled);
    peer_close(&peer);
    fixture_finish(&fixture);
}

Test(http_pieces, bytes_in_any_pieces_get_the_same_answers)
{
    static const size_t PIECES[] = {1, 2, 3, 7, 64};

    for (size_t i = 0; i < sizeof CONVERSATIONS / sizeof CONVERSATIONS[0]; i++) {
        struct buf whole, pieces;

        buf_init(&whole, 64 * 1024);
        converse(CONVERSATIONS[i], SIZE_MAX, &whole);
        for (size_t p = 0; p < sizeof PIECES / sizeof PIECES[0]; p++) {
            buf_init(&pieces, 64 * 1024);
            converse(CONVERSATIONS[i], PIECES[p], &pieces);
            cr_expect(text_equal(buf_text(&whole), buf_text(&pieces)), "case %zu by %zu\n%.*s\n--\n%.*s", i, PIECES[p],
                      TEXT_ARG(buf_text(&whole)), TEXT_ARG(buf_text(&pieces)));
            buf_finish(&pieces);
        }
        buf_finish(&whole);
    }
}
