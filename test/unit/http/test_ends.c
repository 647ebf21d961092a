/* Resets, drains and closes, in every state. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
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

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

Test(http_ends, drains)
{
    struct peer idle;
    bool is_drained = false;

    start();
    peer_connect(&idle, &fixture);
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    cr_assert(fixture_until_connections(&fixture, 2));
    http_server_drain(fixture.server, FIXTURE_TIMEOUT_MS, on_drained, &is_drained);
    cr_assert(peer_is_ended(&idle));
    cr_assert_not(is_drained);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "\r\n\r\nlate"));
    cr_assert(strstr(peer.input, "Connection: close\r\n"));
    cr_assert(peer_is_ended(&peer));
    peer_close(&peer);
    peer_close(&idle);
    cr_assert(test_loop_until_set(&fixture.loop, &is_drained, FIXTURE_TIMEOUT_MS));
    fixture_finish(&fixture);
}

Test(http_ends, cuts_what_is_open_when_the_grace_ends)
{
    bool is_drained = false;

    start();
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    http_server_drain(fixture.server, 30, on_drained, &is_drained);
    cr_assert(test_loop_until_set(&fixture.loop, &is_drained, FIXTURE_TIMEOUT_MS));
    cr_assert(http_request_gone(fixture.held));
    finish();
}

Test(http_ends, drained_is_told_later_also_without_connections)
{
    struct http_settings settings = fixture_settings();
    bool is_drained = false;

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    http_server_drain(fixture.server, 30, on_drained, &is_drained);
    cr_assert_not(is_drained);
    cr_assert(test_loop_until_set(&fixture.loop, &is_drained, FIXTURE_TIMEOUT_MS));
    fixture_finish(&fixture);
}

Test(http_ends, closes_in_every_state)
{
    for (size_t i = 0; i < sizeof RESETS / sizeof RESETS[0]; i++) {
        start();
        peer_send_str(&peer, RESETS[i].sent);
        if (RESETS[i].is_held)
            fixture_run_until_held(&fixture);
        else
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
