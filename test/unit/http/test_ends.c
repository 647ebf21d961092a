/* Resets, drains and closes, in every state. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <poll.h>
#include <string.h>

TestSuite(http_ends, .fini = leak_guard);

/* What a client may have sent when it resets the connection, and whether the handler is then waiting. */
static const struct reset_case {
    const char *sent;
    bool is_held;
} RESETS[] = {
    {"", false},
    {"GET /hel", false},
    {"GET /hold HTTP/1.1\r\nHost: t\r\n\r\n", true},
    {"POST /body-later HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", true},
    {"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", false},
    {"POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", false},
    {"GET /big?8000000 HTTP/1.1\r\nHost: t\r\n\r\n", false},
    {"GET /made HTTP/1.1\r\nHost: t\r\n\r\n", false},
    {"GET /held-made HTTP/1.1\r\nHost: t\r\n\r\n", true},
    {"GET /hello\r\n\r\n", false},
    {HELLO HELLO, false},
    {"GET /stream?10000 HTTP/1.1\r\nHost: t\r\n\r\n", false},
};

Test(http_ends, survives_a_reset_in_every_state)
{
    for (size_t i = 0; i < sizeof RESETS / sizeof RESETS[0]; i++) {
        start();
        peer_pause(&peer, true);
        peer_send_str(&peer, RESETS[i].sent);
        if (RESETS[i].is_held)
            fixture_run_until_held(&fixture);
        else
            test_loop_for(&fixture.loop, 5);
        peer_reset(&peer);
        cr_assert(fixture_until_connections(&fixture, 0), "case %zu", i);
        if (RESETS[i].is_held) {
            cr_assert(http_request_gone(fixture.held));
            fixture_answer_held(&fixture);
        }
        fixture_finish(&fixture);
    }
}

enum { QUIET_MS = 40, NEVER_QUIET_MS = FIXTURE_TIMEOUT_MS / 2 };

Test(http_ends, drains)
{
    struct peer idle;

    start();
    peer_connect(&idle, &fixture);
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    cr_assert(fixture_until_connections(&fixture, 2));
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, QUIET_MS);
    cr_assert(peer_is_ended(&idle));
    cr_assert_not(fixture.is_drained);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "\r\n\r\nlate"));
    cr_assert(strstr(peer.input, "Connection: close\r\n"));
    cr_assert(peer_is_ended(&peer));
    peer_close(&peer);
    peer_close(&idle);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
    cr_assert_not(fixture.is_late);
    fixture_finish(&fixture);
}

/* On a connection from before, on one that began later, and at a server that as yet only wanes. */
Test(http_ends, answers_while_it_drains_and_says_that_it_closes)
{
    for (int only_wanes = 0; only_wanes < 2; only_wanes++) {
        struct peer second;

        start();
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
        cr_assert_null(strstr(peer.input, "Connection: close\r\n"));
        peer_forget(&peer);
        if (only_wanes)
            http_server_wane(fixture.server, NEVER_QUIET_MS);
        else
            fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, NEVER_QUIET_MS);
        test_loop_for(&fixture.loop, 5);
        peer_connect(&second, &fixture);
        peer_send_str(&second, HELLO);
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nhi"));
        cr_assert(peer_is_ended(&peer));
        cr_assert(peer_gets(&second, "Connection: close\r\n\r\nhi"));
        cr_assert(peer_is_ended(&second));
        peer_close(&second);
        finish();
    }
}

/* Its client has read no "Connection: close", so it may send another request. */
Test(http_ends, a_response_from_before_the_drain_keeps_its_connection)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?8000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    while (fixture.handled == 0)
        test_loop_for(&fixture.loop, 1);
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, NEVER_QUIET_MS);
    peer_pause(&peer, false);
    while (peer.bytes < 8000000)
        test_loop_for(&fixture.loop, 1);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peer));
    finish();
}

/* What a client has sent is read before its connection counts as quiet. */
Test(http_ends, what_has_arrived_is_answered_though_the_loop_was_busy)
{
    start();
    cr_assert(fixture_until_connections(&fixture, 1));
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, QUIET_MS);
    peer_send_at_once(&peer, HELLO);
    poll(NULL, 0, 3 * QUIET_MS);
    cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nhi"));
    finish();
}

/* Whoever has connected is answered, though the server stops listening in that turn. */
Test(http_ends, who_waits_to_be_accepted_is_not_left_behind)
{
    struct http_settings settings = fixture_settings();

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, QUIET_MS);
    poll(NULL, 0, 3 * QUIET_MS);
    peer_connect(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peer));
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
    finish();
}

/* A gateway sends it requests until it has looked at /readyz. */
Test(http_ends, a_server_that_was_quiet_listens_when_its_drain_begins)
{
    struct http_settings settings = fixture_settings();

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    fixture_drain(&fixture, FIXTURE_TIMEOUT_MS, NEVER_QUIET_MS);
    test_loop_for(&fixture.loop, 5);
    peer_connect(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peer));
    finish();
}

Test(http_ends, cuts_what_is_open_when_the_grace_ends)
{
    start();
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    fixture_drain(&fixture, 30, 5);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
    cr_assert(fixture.is_late);
    cr_assert(http_request_gone(fixture.held));
    finish();
}

Test(http_ends, drained_is_told_later_also_without_connections)
{
    for (int64_t grace_ms = 0; grace_ms <= 30; grace_ms += 30) {
        struct http_settings settings = fixture_settings();

        fixture_start(&fixture, &settings, "127.0.0.1:0");
        fixture_drain(&fixture, grace_ms, grace_ms / 4);
        cr_assert_not(fixture.is_drained);
        cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_drained, FIXTURE_TIMEOUT_MS));
        fixture_finish(&fixture);
    }
}

Test(http_ends, closes_in_every_state)
{
    for (size_t i = 0; i < sizeof RESETS / sizeof RESETS[0]; i++) {
        start();
        peer_send_str(&peer, RESETS[i].sent);
        if (RESETS[i].is_held)
            fixture_run_until_held(&fixture);
        peer_pause(&peer, true); /* else it gets more than it has room for in no time */
        test_loop_for(&fixture.loop, 5);
        fixture_close(&fixture);
        peer_close(&peer);
        cr_assert(test_loop_finish(&fixture.loop));
    }
}

Test(http_ends, closes_while_a_connection_is_about_to_go_on)
{
    start();
    peer_send_str(&peer, "POST /body-later HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
    fixture_run_until_held(&fixture);
    fixture_answer_held(&fixture);
    fixture_close(&fixture);
    cr_assert_eq(fixture.bodies_failed, 1);
    peer_close(&peer);
    cr_assert(test_loop_finish(&fixture.loop));
}
