/* When bodies are read, skipped and refused. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(http_bodies, .fini = leak_guard);

Test(http_bodies, echoes_bodies)
{
    static const char *const BODIES[] = {
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00\r\n\r\n",
    };

    start();
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        peer_forget(&peer);
        peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\n");
        peer_send_str(&peer, BODIES[i]);
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets(&peer, "\r\n\r\nhelloHTTP/1.1 200 OK"), "%zu: %s", i, peer.input);
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    }
    finish();
}

Test(http_bodies, reads_an_empty_body_later_not_within_the_call)
{
    start();
    peer_send_str(&peer, "GET /body-later HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    fixture_answer_held(&fixture);
    cr_assert_eq(peer_count(&peer, "200 OK"), 0);
    cr_assert(peer_gets(&peer, "Content-Length: 0\r\n\r\n"));
    finish();
}

Test(http_bodies, reads_a_body_that_was_sent_ahead)
{
    start();
    peer_send_str(&peer, "POST /body-later HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello" HELLO);
    fixture_run_until_held(&fixture);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "\r\n\r\nhelloHTTP/1.1 200 OK"));
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

static void answer_held_on_wake(uv_poll_t *wake, int status, int events)
{
    (void)status, (void)events;
    fixture_answer_held(&fixture);
    uv_close((uv_handle_t *)wake, NULL);
}

/* In one turn of the loop, the handler asks for the body, and then the client's end of file arrives. */
Test(http_bodies, reads_a_body_that_was_sent_ahead_of_an_end_of_file)
{
    int wake[2];
    uv_poll_t poll;

    start();
    peer_send_str(&peer, "POST /body-later HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
    fixture_run_until_held(&fixture);
    cr_assert_eq(pipe(wake), 0);
    cr_assert_eq(uv_poll_init(&fixture.loop, &poll, wake[0]), 0);
    cr_assert_eq(uv_poll_start(&poll, UV_READABLE, answer_held_on_wake), 0);
    test_loop_for(&fixture.loop, 5);
    cr_assert_eq(write(wake[1], "x", 1), 1);
    peer_half_close(&peer);
    cr_assert(peer_gets(&peer, "\r\n\r\nhello"));
    close(wake[0]);
    close(wake[1]);
    finish();
}

Test(http_bodies, a_body_asked_for_when_the_client_is_gone_fails_later)
{
    start();
    peer_send_str(&peer, "POST /body-later HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
    fixture_run_until_held(&fixture);
    peer_reset(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    fixture_answer_held(&fixture);
    cr_assert_eq(fixture.bodies_failed, 0);
    fixture_finish(&fixture);
    cr_assert_eq(fixture.bodies_failed, 1);
}

Test(http_bodies, never_takes_an_unread_body_for_a_request)
{
    start();
    peer_send_str(&peer, "POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 45\r\n\r\n" HELLO);
    cr_assert(peer_gets(&peer, "401 Unauthorized"));
    peer_send_str(&peer, "0123456789");
    test_loop_for(&fixture.loop, 20);
    cr_assert_eq(fixture.handled, 1);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

Test(http_bodies, sends_100_continue_when_the_body_is_wanted)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
    cr_assert(peer_gets(&peer, "HTTP/1.1 100 Continue\r\n\r\n"));
    peer_send_str(&peer, "ab" HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nab"));
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

Test(http_bodies, sends_no_100_continue_when_the_body_is_not_wanted_and_closes)
{
    start();
    peer_send_str(&peer, "POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    cr_assert(peer_gets(&peer, "401 Unauthorized"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(peer_count(&peer, "100 Continue"), 0);
    cr_assert_eq(peer_count(&peer, "Connection: close"), 1);
    finish();
}

Test(http_bodies, sends_no_100_continue_to_http_1_0_nor_when_the_body_is_there)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab");
    cr_assert(peer_gets(&peer, "\r\n\r\nab"));
    peer_send_str(&peer, "POST /echo HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    test_loop_for(&fixture.loop, 20);
    peer_send_str(&peer, "cd");
    cr_assert(peer_gets(&peer, "\r\n\r\ncd"));
    cr_assert_eq(peer_count(&peer, "100 Continue"), 0);
    finish();
}

Test(http_bodies, refuses_a_body_too_large_and_tells_the_handler)
{
    static const char *const HEADS[] = {
        "Content-Length: 65537\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n10001\r\n",
    };

    for (size_t i = 0; i < sizeof HEADS / sizeof HEADS[0]; i++) {
        char *body = calloc(1, 65537);

        start();
        peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\n");
        peer_send_str(&peer, HEADS[i]);
        peer_send(&peer, body, 65537);
        free(body);
        cr_assert(peer_gets(&peer, "413 Content Too Large"));
        cr_assert(peer_gets(&peer, "error 413."));
        cr_assert(peer_is_ended(&peer));
        cr_assert_not(peer.is_reset);
        cr_assert_eq(fixture.bodies_failed, i);
        finish();
    }
}

Test(http_bodies, refuses_a_body_cut_short)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab");
    peer_half_close(&peer);
    cr_assert(peer_gets(&peer, "400 Bad Request"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(fixture.bodies_failed, 1);
    finish();
}
