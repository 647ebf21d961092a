/* Responses whose body is made while it is sent. */
#include "http/server_internal.h"

#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"
#include "tls_peer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(http_streams, .fini = leak_guard);

#define STREAM(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"

static bool has_streams_gone(void *arg)
{
    return fixture.streams_gone >= *(unsigned *)arg;
}

/* The length of the body, once its chunks are put together; SIZE_MAX if they are malformed or the last is missing. */
static size_t chunked_bytes(const char *body)
{
    size_t total = 0;

    for (;;) {
        char *end;
        const size_t bytes = strtoul(body, &end, 16);

        if (end == body || strncmp(end, "\r\n", 2) != 0 || strlen(end + 2) < bytes + 2)
            return SIZE_MAX;
        if (strncmp(end + 2 + bytes, "\r\n", 2) != 0 || strspn(end + 2, "x") < bytes)
            return SIZE_MAX;
        if (bytes == 0)
            return total;
        total += bytes;
        body = end + 2 + bytes + 2;
    }
}

static const char *body(void)
{
    return strstr(peer.input, "\r\n\r\n") + 4;
}

Test(http_streams, a_body_comes_in_chunks_and_the_connection_goes_on)
{
    static const unsigned PIECES[] = {0, 1, 3, 400};

    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        char request[128];

        start();
        snprintf(request, sizeof request, STREAM("/stream?%u") HELLO, PIECES[i]);
        peer_send_str(&peer, request);
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "%u pieces", PIECES[i]);
        cr_expect(strstr(peer.input, "Transfer-Encoding: chunked\r\n"));
        cr_expect_eq(chunked_bytes(body()), PIECES[i] * (size_t)FIXTURE_PIECE_BYTES, "%u pieces", PIECES[i]);
        cr_expect_null(strstr(peer.input, "Connection: close"));
        fixture.pieces = 0;
        finish();
    }
}

Test(http_streams, head_gets_the_head)
{
    start();
    peer_send_str(&peer, "HEAD /stream?3 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_expect(strstr(peer.input, "Content-Type: text/csv\r\n"));
    cr_expect_eq(strncmp(body(), "HTTP/1.1 200 OK", 15), 0, "%s", body());
    cr_expect_eq(fixture.pieces, 0);
    finish();
}

Test(http_streams, http_1_0_gets_the_end_of_the_connection)
{
    start();
    peer_send_str(&peer, "GET /stream?3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    cr_assert(peer_is_ended(&peer));
    cr_expect_not(peer.is_reset);
    cr_expect(strstr(peer.input, "Connection: close\r\n"));
    cr_expect_null(strstr(peer.input, "Transfer-Encoding"));
    cr_expect_eq(strspn(body(), "x"), 3 * FIXTURE_PIECE_BYTES);
    cr_expect_eq(strlen(body()), 3 * FIXTURE_PIECE_BYTES);
    finish();
}

Test(http_streams, an_empty_one_ends_too_with_http_1_0)
{
    start();
    peer_send_str(&peer, "GET /stream?0 HTTP/1.0\r\n\r\n");
    cr_assert(peer_is_ended(&peer));
    cr_expect_str_eq(body(), "");
    finish();
}

/* The reset may overtake what was sent before it. */
Test(http_streams, one_that_breaks_is_never_taken_for_whole)
{
    static const char *const REQUESTS[] = {STREAM("/stream-broken?2"), "GET /stream-broken?2 HTTP/1.0\r\n\r\n",
                                           STREAM("/stream-broken?0")};

    for (size_t i = 0; i < sizeof REQUESTS / sizeof *REQUESTS; i++) {
        start();
        peer_send_str(&peer, REQUESTS[i]);
        cr_assert(peer_is_ended(&peer), "case %zu, after %zu bytes", i, peer.bytes);
        cr_expect(peer.is_reset, "case %zu", i);
        cr_expect_null(strstr(peer.input, "\r\n0\r\n\r\n"));
        finish();
    }
}

static size_t unread_bytes(void)
{
    return fixture.server->conns.burdens.kinds[BURDEN_OUTPUT].bytes;
}

Test(http_streams, a_slow_reader_makes_no_more_than_one_piece_wait)
{
    enum { PIECES = 600, SETTLED_MS = 30 };
    unsigned made;

    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, STREAM("/stream?600"));
    do {
        made = fixture.pieces;
        test_loop_for(&fixture.loop, SETTLED_MS);
    } while (fixture.pieces != made || made == 0);
    cr_assert_lt(made, PIECES);
    cr_expect_lt(unread_bytes(), 2 * FIXTURE_PIECE_BYTES);
    peer_pause(&peer, false);
    cr_assert(peer_gets(&peer, "\r\n0\r\n\r\n"));
    cr_expect_eq(chunked_bytes(body()), PIECES * (size_t)FIXTURE_PIECE_BYTES);
    cr_expect_eq(unread_bytes(), 0);
    finish();
}

Test(http_streams, a_reader_that_stops_is_cut_and_its_handler_told)
{
    struct http_settings settings = fixture_settings();

    settings.limits.write_timeout_ms = 60;
    start_with(&settings);
    peer_pause(&peer, true);
    peer_send_str(&peer, STREAM("/stream?1000000"));
    cr_assert(fixture_until(&fixture, has_streams_gone, &(unsigned){1}));
    cr_expect_eq(http_server_connections(fixture.server), 0);
    finish();
    cr_expect_eq(fixture.streams_gone, 1);
}

Test(http_streams, a_client_that_goes_ends_its_stream)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, STREAM("/stream?1000000"));
    test_loop_for(&fixture.loop, 10);
    peer_reset(&peer);
    cr_assert(fixture_until(&fixture, has_streams_gone, &(unsigned){1}));
    fixture_finish(&fixture);
    cr_expect_eq(fixture.streams_gone, 1);
}

Test(http_streams, one_that_ends_while_the_server_drains_is_whole)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, STREAM("/stream?600"));
    while (fixture.pieces == 0)
        test_loop_for(&fixture.loop, 1);
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, 5);
    test_loop_for(&fixture.loop, 20);
    cr_assert_not(fixture.is_drained);
    peer_pause(&peer, false);
    cr_assert(peer_is_ended(&peer));
    cr_expect_eq(chunked_bytes(body()), 600 * (size_t)FIXTURE_PIECE_BYTES);
    peer_close(&peer);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
    fixture_finish(&fixture);
}

Test(http_streams, one_that_does_not_is_cut)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, STREAM("/stream?1000000"));
    while (fixture.pieces == 0)
        test_loop_for(&fixture.loop, 1);
    fixture_drain(&fixture, 30, 5);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
    cr_assert(fixture_until(&fixture, has_streams_gone, &(unsigned){1}));
    finish();
}
