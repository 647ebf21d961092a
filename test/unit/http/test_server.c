#include "base/mem.h"
#include "base/metrics.h"
#include "http/response.h"
#include "http/server_internal.h"

#include "leak_guard.h"
#include "server_fixture.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO "GET /hello?hi HTTP/1.1\r\nHost: t\r\n\r\n"

static struct fixture fixture;
static struct peer peer;

static void start_with(const struct http_settings *settings)
{
    fixture_start(&fixture, settings, "127.0.0.1:0");
    peer_connect(&peer, &fixture);
}

static void start(void)
{
    struct http_settings settings = fixture_settings();

    start_with(&settings);
}

static void finish(void)
{
    peer_close(&peer);
    fixture_finish(&fixture);
}

static size_t held_bytes(enum burden_kind kind)
{
    return fixture.server->conns.burdens.kinds[kind].bytes;
}

TestSuite(http_server, .fini = leak_guard);

Test(http_server, answers_and_keeps_the_connection)
{
    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert(strstr(peer.input, "HTTP/1.1 200 OK\r\nDate: ") == peer.input);
    cr_assert(strstr(peer.input, "GMT\r\nCache-Control: no-store\r\nX-Request-Id: req_"));
    cr_assert(strstr(peer.input, "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi"));
    cr_assert_not(strstr(peer.input, "Connection:"));
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    cr_assert_eq(fixture.handled, 2);
    finish();
}

/* count requests of one line each, numbered by their query, in as few segments as the kernel likes. */
static void send_numbered(const char *path, unsigned count)
{
    struct buf all;

    buf_init(&all, 1024 * 1024);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&all, "GET %s?n%u. HTTP/1.1\r\nHost: t\r\n\r\n", path, i);
    cr_assert_not(all.failed);
    peer_send(&peer, all.ptr, all.len);
    buf_finish(&all);
}

static void assert_numbered_answers(unsigned count)
{
    const char *at = peer.input;

    cr_assert(peer_gets_count(&peer, "200 OK", count), "%zu came", peer_count(&peer, "200 OK"));
    for (unsigned i = 0; i < count; i++) {
        char body[32];

        snprintf(body, sizeof body, "\r\n\r\nn%u.", i);
        at = strstr(at, body);
        cr_assert(at, "answer %u is missing or late", i);
    }
}

Test(http_server, answers_a_hundred_pipelined_requests_in_order)
{
    start();
    send_numbered("/hello", 100);
    assert_numbered_answers(100);
    finish();
}

Test(http_server, answers_pipelined_requests_in_order_when_handlers_wait)
{
    start();
    send_numbered("/later", 50);
    assert_numbered_answers(50);
    finish();
}

Test(http_server, stops_reading_while_much_is_sent_ahead_and_loses_nothing)
{
    start();
    peer_send_str(&peer, "GET /hold?n HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    /* Some 100 KiB, beyond the stash, whose overflow would stop the process. */
    send_numbered("/hello", 3000);
    test_loop_for(&fixture.loop, 20);
    cr_assert_eq(fixture.handled, 1);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets_count(&peer, "200 OK", 3001));
    cr_assert_eq(fixture.handled, 3001);
    finish();
}

Test(http_server, answers_pipelined_requests_in_order_whatever_they_wait_for)
{
    start();
    peer_send_str(&peer, HELLO HELLO "GET /made HTTP/1.1\r\nHost: t\r\n\r\n" HELLO
                                     "GET /big?200000 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO
                                     "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
                                     "Content-Length: 3\r\n\r\n");
    cr_assert(peer_gets(&peer, "HTTP/1.1 100 Continue\r\n\r\n"));
    cr_assert_eq(peer_count(&peer, "\r\n\r\nhi"), 4);
    peer_send_str(&peer, "abc");
    cr_assert(peer_gets(&peer, "\r\n\r\nabc"));
    const char *at = peer.input;
    static const char *const PARTS[] = {"\r\n\r\nhiHTTP/1.1 200", "\r\n\r\nhiHTTP/1.1 201", "\r\n\r\nhiHTTP/1.1 200",
                                        "xHTTP/1.1 200",          "\r\n\r\nhiHTTP/1.1 100", "\r\n\r\nHTTP/1.1 200"};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        at = strstr(at, PARTS[i]);
        cr_assert(at, "part %zu is missing or late", i);
        at++;
    }
    finish();
}

Test(http_server, answers_a_half_closed_client_then_closes)
{
    start();
    peer_send_str(&peer, HELLO HELLO);
    peer_half_close(&peer);
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    finish();
}

/* Its socket tells only of what is new by then: the end comes with the last bytes, and nothing comes after. */
Test(http_server, sees_the_end_of_input_that_comes_with_the_last_request)
{
    start();
    for (size_t i = 1; i <= 2; i++) {
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", i));
    }
    cr_assert_eq(send(peer.fd, HELLO, strlen(HELLO), 0), (ssize_t)strlen(HELLO));
    peer_half_close(&peer);
    cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", 3));
    cr_assert(peer_is_ended(&peer));
    finish();
}

/* More than is read at once, in one piece, twice, and single requests between and after. */
Test(http_server, reads_on_after_a_flood)
{
    enum { FLOOD = 5000, BYTES = sizeof HELLO - 1 };
    static char flood[FLOOD * BYTES];
    size_t answers = 0;

    for (size_t at = 0; at < sizeof flood; at += BYTES)
        memcpy(flood + at, HELLO, BYTES);
    start();
    for (int i = 0; i < 2; i++) {
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", ++answers));
        peer_send(&peer, flood, sizeof flood);
        cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", answers += FLOOD));
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", ++answers));
    }
    finish();
}

Test(http_server, answers_a_client_that_half_closes_while_its_request_is_handled)
{
    start();
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n" HELLO "GET /unfinished");
    fixture_run_until_held(&fixture);
    peer_half_close(&peer);
    test_loop_for(&fixture.loop, 20);
    cr_assert_not(http_request_gone(fixture.held));
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "\r\n\r\nlate"));
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(peer_count(&peer, "HTTP/1.1 "), 2);
    finish();
}

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
};

Test(http_server, survives_a_reset_in_every_state)
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

static bool is_told(void *arg)
{
    return ((struct fixture *)arg)->told != TOLD_NOTHING;
}

Test(http_server, tells_that_an_answer_was_delivered)
{
    start();
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    cr_assert(peer_gets(&peer, "Location: /made/1\r\n"));
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "the next request is answered after");
    finish();
}

Test(http_server, tells_that_an_answer_was_not_delivered_to_a_client_that_reset)
{
    start();
    peer_send_str(&peer, "GET /held-made HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    peer_reset(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    fixture_answer_held(&fixture);
    cr_assert_eq(fixture.told, TOLD_NOTHING, "told within the call");
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

/* Clients close so with SO_LINGER 0, and some proxies do. The connection was used before: from then on kernels delay
 * acknowledgements. */
static void reset_behind_an_answer(unsigned wait_ms)
{
    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "\r\n\r\nsecret"));
    if (wait_ms)
        test_loop_for(&fixture.loop, wait_ms);
    peer_reset(&peer);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    fixture_finish(&fixture);
}

Test(http_server, an_answer_that_was_read_is_delivered_though_a_reset_follows_at_once)
{
    for (int i = 0; i < 200; i++)
        reset_behind_an_answer(0);
}

Test(http_server, an_answer_that_was_read_is_delivered_though_a_reset_follows)
{
    for (int i = 0; i < 200; i++)
        reset_behind_an_answer(5);
}

Test(http_server, an_answer_of_which_a_part_was_acknowledged_is_not_delivered)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /made?10000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 30);
    cr_assert_eq(fixture.told, TOLD_NOTHING);
    peer_reset(&peer);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

Test(http_server, tells_that_an_answer_was_not_delivered_to_a_client_that_closed)
{
    start();
    peer_send_str(&peer, "GET /held-made HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    peer_close(&peer);
    test_loop_for(&fixture.loop, 20);
    cr_assert_not(http_request_gone(fixture.held), "an end of file is not yet an end");
    fixture_answer_held(&fixture);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

Test(http_server, echoes_bodies)
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

Test(http_server, reads_an_empty_body_later_not_within_the_call)
{
    start();
    peer_send_str(&peer, "GET /body-later HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    fixture_answer_held(&fixture);
    cr_assert_eq(peer_count(&peer, "200 OK"), 0);
    cr_assert(peer_gets(&peer, "Content-Length: 0\r\n\r\n"));
    finish();
}

Test(http_server, reads_a_body_that_was_sent_ahead)
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

/* The body is asked for and the client's end of file arrives in one turn of the loop, in that order. */
Test(http_server, reads_a_body_that_was_sent_ahead_of_an_end_of_file)
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

Test(http_server, a_body_asked_for_when_the_client_is_gone_fails_later)
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

Test(http_server, never_takes_an_unread_body_for_a_request)
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

Test(http_server, sends_100_continue_when_the_body_is_wanted)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
    cr_assert(peer_gets(&peer, "HTTP/1.1 100 Continue\r\n\r\n"));
    peer_send_str(&peer, "ab" HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nab"));
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

Test(http_server, sends_no_100_continue_when_the_body_is_not_wanted_and_closes)
{
    start();
    peer_send_str(&peer, "POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    cr_assert(peer_gets(&peer, "401 Unauthorized"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(peer_count(&peer, "100 Continue"), 0);
    cr_assert_eq(peer_count(&peer, "Connection: close"), 1);
    finish();
}

Test(http_server, sends_no_100_continue_to_http_1_0_nor_when_the_body_is_there)
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

Test(http_server, refuses_a_body_too_large_and_tells_the_handler)
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

Test(http_server, refuses_a_body_cut_short)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab");
    peer_half_close(&peer);
    cr_assert(peer_gets(&peer, "400 Bad Request"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(fixture.bodies_failed, 1);
    finish();
}

Test(http_server, times_out_heads_and_bodies_with_408_and_idle_connections_in_silence)
{
    static const struct {
        const char *sent, *answer;
    } CASES[] = {
        {"", ""},
        {HELLO, "200 OK"},
        {"GET /hello HTTP/1.1\r\nHo", "408 Request Timeout"},
        {"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", "408 Request Timeout"},
        {"POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab", "401 Unauthorized"},
    };
    struct http_settings settings = fixture_settings();

    settings.head_timeout_ms = settings.body_timeout_ms = settings.idle_timeout_ms = 60;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        start_with(&settings);
        peer_send_str(&peer, CASES[i].sent);
        cr_assert(peer_is_ended(&peer), "case %zu", i);
        cr_assert_not(peer.is_reset);
        cr_assert(strstr(peer.input, CASES[i].answer), "case %zu: %s", i, peer.input);
        cr_assert_eq(peer_count(&peer, "HTTP/1.1"), CASES[i].answer[0] ? 1 : 0);
        finish();
    }
}

Test(http_server, a_head_that_trickles_has_one_deadline_from_its_first_byte)
{
    struct http_settings settings = fixture_settings();

    settings.head_timeout_ms = 100;
    start_with(&settings);
    for (int i = 0; i < 30 && !peer.is_ended; i++) {
        peer_send_str(&peer, i == 0 ? "GET /hello HTTP/1.1\r\nX: " : "a");
        test_loop_for(&fixture.loop, 10);
    }
    cr_assert(peer_gets(&peer, "408 Request Timeout"));
    finish();
}

Test(http_server, a_body_that_trickles_has_its_deadline_anew_with_each_byte)
{
    struct http_settings settings = fixture_settings();

    settings.body_timeout_ms = 300;
    settings.body_min_bytes_per_s = 0;
    start_with(&settings);
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\n");
    for (int i = 0; i < 6; i++) {
        test_loop_for(&fixture.loop, 100);
        peer_send_str(&peer, "a");
    }
    cr_assert(peer_gets(&peer, "\r\n\r\naaaaaa"), "%s", peer.input);
    finish();
}

/* Whoever sends a byte from time to time is never late for the next one. */
static const struct trickle_case {
    const char *path, *answer;
    int64_t total_ms, bytes_per_s;
} TRICKLES[] = {
    {"/echo", "408 Request Timeout", 200, 0},
    {"/echo", "408 Request Timeout", 600 * 1000, 200},
    {"/unread", "401 Unauthorized", 600 * 1000, 0},
};

Test(http_server, a_body_that_trickles_for_ever_ends)
{
    for (size_t i = 0; i < sizeof TRICKLES / sizeof *TRICKLES; i++) {
        struct http_settings settings = fixture_settings();
        char head[128];

        settings.body_timeout_ms = 100;
        settings.body_total_timeout_ms = TRICKLES[i].total_ms;
        settings.body_min_bytes_per_s = TRICKLES[i].bytes_per_s;
        start_with(&settings);
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n", TRICKLES[i].path);
        peer_send_str(&peer, head);
        for (int n = 0; n < 200 && !peer.is_ended; n++) {
            peer_send_str(&peer, "a");
            test_loop_for(&fixture.loop, 20);
        }
        cr_assert(peer.is_ended, "case %zu goes on", i);
        cr_assert(strstr(peer.input, TRICKLES[i].answer), "case %zu: %s", i, peer.input);
        cr_assert_eq(strstr(peer.input, "Connection: close\r\n") != NULL, i < 2, "case %zu", i);
        finish();
    }
}

Test(http_server, a_body_that_is_slow_but_not_too_slow_is_read)
{
    struct http_settings settings = fixture_settings();
    static const char PIECE[] = "0123456789";

    settings.body_timeout_ms = 100;
    settings.body_min_bytes_per_s = 10;
    start_with(&settings);
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200\r\n\r\n");
    for (int n = 0; n < 20; n++) {
        peer_send_str(&peer, PIECE);
        test_loop_for(&fixture.loop, 20);
    }
    cr_assert(peer_gets(&peer, "\r\n\r\n0123456789"), "%s", peer.input);
    finish();
}

Test(http_server, cuts_a_client_that_reads_its_answer_a_little_at_a_time)
{
    struct http_settings settings = fixture_settings();
    static char taken[100 * 1024];

    settings.write_timeout_ms = 200;
    settings.write_min_bytes_per_s = 100 * 1000 * 1000;
    start_with(&settings);
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?15000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    for (int n = 0; n < 500 && http_server_connections(fixture.server) > 0; n++) {
        cr_assert(recv(peer.fd, taken, sizeof taken, MSG_DONTWAIT) != 0);
        test_loop_for(&fixture.loop, 5);
    }
    cr_assert_eq(http_server_connections(fixture.server), 0);
    finish();
}

Test(http_server, cuts_a_client_that_does_not_read_its_answer)
{
    struct http_settings settings = fixture_settings();

    settings.write_timeout_ms = 60;
    start_with(&settings);
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?30000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(fixture_until_connections(&fixture, 0));
    finish();
}

Test(http_server, a_slow_reader_gets_all_of_a_large_answer)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?12000000 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    test_loop_for(&fixture.loop, 30);
    peer_pause(&peer, false);
    cr_assert(peer_gets(&peer, "xHTTP/1.1 200 OK"));
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert_eq(strspn(strstr(peer.input, "\r\n\r\n") + 4, "x"), 12000000);
    finish();
}

static bool has_handled_all(void *arg)
{
    return fixture.handled >= *(unsigned *)arg;
}

static bool has_come_all(void *arg)
{
    return peer.bytes > *(size_t *)arg;
}

/* Each may be slow, all of them together may not fill the memory. */
Test(http_server, cuts_whoever_makes_too_much_wait)
{
    enum { PEERS = 4 };
    struct peer peers[PEERS];
    unsigned handled = PEERS + 1 + PEERS / 2;

    start();
    for (size_t i = 0; i < PEERS; i++) {
        peer_connect(&peers[i], &fixture);
        peer_pause(&peers[i], true);
        peer_send_str(&peers[i], "GET /big?30000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    cr_assert(fixture_until_connections(&fixture, 1 + PEERS / 2));
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "who reads is served");
    for (size_t i = 0; i < PEERS; i++)
        peer_close(&peers[i]);
    cr_assert(fixture_until_connections(&fixture, 1));
    for (size_t i = 0; i < PEERS / 2; i++) {
        peer_connect(&peers[i], &fixture);
        peer_pause(&peers[i], true);
        peer_send_str(&peers[i], "GET /big?30000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    cr_assert(fixture_until(&fixture, has_handled_all, &handled));
    cr_assert_eq(http_server_connections(fixture.server), 1 + PEERS / 2, "room is given back");
    for (size_t i = 0; i < PEERS / 2; i++)
        peer_close(&peers[i]);
    finish();
}

/* Whoever waits for a little is not cut for those that make much wait. */
Test(http_server, cuts_whose_unread_answers_are_largest)
{
    enum { PEERS = 4 };
    struct peer peers[PEERS];
    const char *body;

    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?9000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    for (size_t i = 0; i < PEERS; i++) {
        peer_connect(&peers[i], &fixture);
        peer_pause(&peers[i], true);
        peer_send_str(&peers[i], "GET /big?30000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    cr_assert(fixture_until(&fixture, has_handled_all, &(unsigned){1 + PEERS}));
    cr_assert(fixture_until_connections(&fixture, 3), "%zu", http_server_connections(fixture.server));
    peer_pause(&peer, false);
    cr_assert(fixture_until(&fixture, has_come_all, &(size_t){9000000}));
    body = strstr(peer.input, "\r\n\r\n") + 4;
    cr_assert_eq(strspn(body, "x"), 9000000);
    for (size_t i = 0; i < PEERS; i++)
        peer_close(&peers[i]);
    finish();
}

Test(http_server, keeps_no_copy_of_what_lasts)
{
    size_t held;

    for (size_t i = 0; i < FIXTURE_LASTING_BYTES; i++)
        fixture_lasting[i] = (char)('a' + i % 23);
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /lasting?12000000 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    cr_assert(fixture_until(&fixture, has_handled_all, &(unsigned){1}));
    held = held_bytes(BURDEN_OUTPUT);
    cr_assert(held > 0 && held < 16 * 1024, "%zu", held);
    peer_pause(&peer, false);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert_eq(memcmp(strstr(peer.input, "\r\n\r\n") + 4, fixture_lasting, 12000000), 0);
    cr_assert_eq(held_bytes(BURDEN_OUTPUT), 0);
    finish();
}

/* What each of many strangers may have sent, and does not go on with. */
static const struct unfinished_case {
    const char *beginning;
    size_t more;
} UNFINISHED[] = {
    {"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n", 50000},
    {"POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nc351\r\n", 50000},
    {"GET /hello HTTP/1.1\r\nHost: t\r\nX: ", 15000},
    {"POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n", 0},
};

Test(http_server, cuts_whose_unfinished_requests_are_largest)
{
    enum { PEERS = 14, BOUND = 48 * 1024 };
    static struct peer peers[PEERS];
    static char more[50000];

    memset(more, 'a', sizeof more);
    for (size_t n = 0; n < sizeof UNFINISHED / sizeof *UNFINISHED; n++) {
        struct http_settings settings = fixture_settings();

        settings.waiting_max_bytes = BOUND;
        settings.head_timeout_ms = settings.body_timeout_ms = settings.body_total_timeout_ms = 600 * 1000;
        settings.body_min_bytes_per_s = 0;
        start_with(&settings);
        peer_send_str(&peer, "GET /hello?hi HT");
        test_loop_for(&fixture.loop, 5);
        for (size_t i = 0; i < PEERS; i++) {
            peer_connect(&peers[i], &fixture);
            peer_send_str(&peers[i], UNFINISHED[n].beginning);
            peer_send(&peers[i], more, UNFINISHED[n].more);
            test_loop_for(&fixture.loop, 1);
            cr_assert_leq(held_bytes(BURDEN_INPUT), (size_t)BOUND, "case %zu", n);
        }
        cr_assert_lt(http_server_connections(fixture.server), PEERS, "case %zu", n);
        peer_send_str(&peer, "TP/1.1\r\nHost: t\r\n\r\n");
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "case %zu: who holds little goes on", n);
        for (size_t i = 0; i < PEERS; i++)
            peer_close(&peers[i]);
        cr_assert(fixture_until_connections(&fixture, 1));
        cr_assert_eq(held_bytes(BURDEN_INPUT), 0, "case %zu", n);
        finish();
    }
}

struct awaited {
    unsigned handled;
    uint64_t until_ms;
};

static bool has_handled_or_waited(void *arg)
{
    const struct awaited *awaited = arg;

    return fixture.handled >= awaited->handled || uv_now(&fixture.loop) >= awaited->until_ms;
}

static bool has_come(void *arg)
{
    return peer.bytes > *(const size_t *)arg;
}

static void count_turn(uv_prepare_t *turns)
{
    (*(unsigned *)turns->data)++;
}

/* Nothing comes in while the answer waits, but for one piece of a request; and when all is taken, the loop sleeps. */
Test(http_server, a_slow_reader_gets_a_large_answer_that_came_late)
{
    enum { BYTES = 10000000, MOST_TURNS = 20 };
    uv_prepare_t prepare;
    unsigned turns = 0;

    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    for (int i = 0; i < 2; i++) {
        bool sends_ahead = i > 0;

        peer_forget(&peer);
        peer_pause(&peer, true);
        peer_send_str(&peer, "GET /held-big?10000000 HTTP/1.1\r\nHost: t\r\n\r\n");
        fixture_run_until_held(&fixture);
        fixture_answer_held(&fixture);
        test_loop_for(&fixture.loop, 10);
        if (sends_ahead)
            peer_send_str(&peer, "GET /hello?hi HTTP/1.1\r\n");
        peer_pause(&peer, false);
        cr_assert(peer_gets(&peer, "\r\n\r\nx"));
        cr_assert(fixture_until(&fixture, has_come, &(size_t){BYTES}));
        if (sends_ahead)
            peer_send_str(&peer, "Host: t\r\n\r\n");
    }
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    uv_prepare_init(&fixture.loop, &prepare);
    prepare.data = &turns;
    uv_prepare_start(&prepare, count_turn);
    test_loop_for(&fixture.loop, 30);
    uv_close((uv_handle_t *)&prepare, NULL);
    cr_assert_lt(turns, MOST_TURNS, "%u turns of the loop in 30 ms", turns);
    finish();
}

/* A 100 Continue may wait, and the answer comes; by then the socket may have room again. */
Test(http_server, what_is_sent_later_comes_behind_what_waits)
{
    enum { BYTES = 10000000 };
    char *big = mem_alloc(BYTES), *dropped = mem_alloc(BYTES);
    struct conn *conn;
    ssize_t got;

    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_forget(&peer); /* its X-Request-Id may hold "xy" */
    conn = LIST_ENTRY(list_first(&fixture.server->conns.all), struct conn, in_all);
    memset(big, 'x', BYTES);
    cr_assert_eq(output_send(&conn->output, (struct text){big, BYTES}, (struct text){NULL, 0}), OUTPUT_WAITING);
    conn_await(conn);
    while ((got = recv(peer.fd, dropped, BYTES, MSG_DONTWAIT)) > 0)
        cr_assert_null(memchr(dropped, 'y', (size_t)got));
    cr_assert_eq(output_send(&conn->output, TEXT("y"), (struct text){NULL, 0}), OUTPUT_WAITING);
    cr_assert(peer_gets(&peer, "xy"));
    cr_assert_eq(held_bytes(BURDEN_OUTPUT), 0);
    free(big);
    free(dropped);
    finish();
}

/* Each would fit the socket's buffer, all together do not: the server stops to handle them. */
Test(http_server, a_slow_reader_gets_all_of_many_small_answers)
{
    enum { COUNT = 250, STALLED_MS = 100, BODY_BYTES = 50000 };
    static const char REQUEST[] = "GET /big?50000 HTTP/1.1\r\nHost: t\r\n\r\n";

    start();
    peer_pause(&peer, true);
    for (unsigned i = 0; i < COUNT; i++) {
        struct awaited awaited = {i + 1, uv_now(&fixture.loop) + (i == fixture.handled ? STALLED_MS : 0)};

        peer_send_str(&peer, REQUEST);
        cr_assert(test_loop_until(&fixture.loop, has_handled_or_waited, &awaited, FIXTURE_TIMEOUT_MS));
    }
    cr_assert_lt(fixture.handled, COUNT, "nobody reads, so that much is not even handled");
    peer_send_str(&peer, "GET /unfinished");
    peer_half_close(&peer);
    peer_pause(&peer, false);
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    cr_assert_eq(peer_count(&peer, "Content-Length: 50000\r\n\r\nx"), COUNT);
    cr_assert_eq(strlen(strstr(peer.input + peer.bytes - BODY_BYTES - 4, "\r\n\r\n")), BODY_BYTES + 4);
    finish();
}

Test(http_server, the_answer_to_a_refused_head_is_not_lost_to_a_reset)
{
    char *garbage = calloc(1, 200 * 1024);

    memset(garbage, 'a', 200 * 1024 - 1);
    memcpy(garbage, "GET /", 5);
    start();
    peer_send(&peer, garbage, 100 * 1024);
    cr_assert(peer_gets(&peer, "414 URI Too Long"));
    peer_send(&peer, garbage, 50 * 1024);
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    free(garbage);
    finish();
}

Test(http_server, http_1_0_and_connection_options)
{
    static const struct {
        const char *head, *connection;
        bool closes;
    } CASES[] = {
        {"GET /hello?hi HTTP/1.0\r\n\r\n", "Connection: close\r\n", true},
        {"GET /hello?hi HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "Connection: keep-alive\r\n", false},
        {"GET /hello?hi HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", "Connection: close\r\n", true},
        {"GET /hello?hi HTTP/1.1\r\nHost: t\r\nConnection: x, Close\r\n\r\n", "Connection: close\r\n", true},
        {"GET /hello?hi HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "", false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        start();
        peer_send_str(&peer, CASES[i].head);
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
        cr_assert(strstr(peer.input, CASES[i].connection));
        if (CASES[i].closes)
            cr_assert(peer_is_ended(&peer));
        else
            cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", 2));
        cr_assert_eq(fixture.handled, CASES[i].closes ? 1 : 2, "case %zu", i);
        finish();
    }
}

Test(http_server, head_and_204_have_no_body)
{
    start();
    peer_send_str(&peer, "HEAD /hello?hi HTTP/1.1\r\nHost: t\r\n\r\nGET /none HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "204 No Content"));
    cr_assert(strstr(peer.input, "Content-Length: 2\r\n\r\nHTTP/1.1 204 No Content"));
    cr_assert_eq(peer_count(&peer, "Content-Length"), 1);
    finish();
}

Test(http_server, connect_is_refused_with_allow_and_other_methods_reach_the_handler)
{
    start();
    peer_send_str(&peer, "TRACE /hello?hi HTTP/1.1\r\nHost: t\r\n\r\nPROPFIND /hello?hi HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    peer_send_str(&peer, "CONNECT t:443 HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "405 Method Not Allowed"));
    cr_assert(peer_gets(&peer, "Allow: GET, HEAD"));
    cr_assert_eq(fixture.handled, 2);
    finish();
}

Test(http_server, options_of_the_server_are_answered_without_a_handler)
{
    start();
    peer_send_str(&peer, "OPTIONS * HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nab" HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert(strstr(peer.input, "HTTP/1.1 204 No Content\r\n") == peer.input);
    cr_assert_eq(peer_count(&peer, "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"), 1);
    cr_assert_eq(fixture.handled, 1);
    finish();
}

static void print_otherwise(struct http_request *request, enum http_error error, void *arg)
{
    cr_assert_eq(arg, &fixture);
    cr_assert_eq(error, HTTP_ERROR_EXPECTATION_FAILED);
    http_response_header(request, TEXT("X-Printed"), TEXT("otherwise"));
    http_reply(request, 403, TEXT("text/plain"), TEXT("no wonders"));
}

Test(http_server, its_owner_prints_what_it_refuses_by_itself)
{
    struct http_settings settings = fixture_settings();

    settings.print_error = print_otherwise;
    start_with(&settings);
    peer_send_str(&peer, "GET /hello HTTP/1.1\r\nHost: t\r\nExpect: wonders\r\n\r\n");
    cr_assert(peer_gets(&peer, "HTTP/1.1 403 Forbidden\r\n"));
    cr_assert(peer_gets(&peer, "X-Printed: otherwise\r\n"));
    cr_assert(peer_gets(&peer, "Connection: close\r\n\r\nno wonders"));
    cr_assert(peer_is_ended(&peer));
    finish();
}

Test(http_server, an_error_that_nobody_prints_is_its_status)
{
    struct http_settings settings = fixture_settings();

    settings.print_error = NULL;
    start_with(&settings);
    peer_send_str(&peer, "CONNECT t:443 HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "HTTP/1.1 405 Method Not Allowed\r\n"));
    cr_assert(peer_gets(&peer, "Allow: GET, HEAD"));
    cr_assert(peer_gets(&peer, "Content-Length: 0\r\nConnection: close\r\n\r\n"));
    cr_assert(peer_is_ended(&peer));
    finish();
}

Test(http_server, sheds_what_is_beyond_its_connections)
{
    struct http_settings settings = fixture_settings();
    struct peer second;

    settings.connections_max = 1;
    start_with(&settings);
    peer_send_str(&peer, "GET /hold?busy HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    peer_connect(&second, &fixture);
    peer_send_str(&second, HELLO);
    cr_assert(peer_gets(&second, "503 Service Unavailable"));
    cr_assert(peer_gets(&second, "error 503."));
    cr_assert(peer_is_ended(&second));
    peer_close(&second);
    fixture_answer_held(&fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

Test(http_server, the_longest_idle_connection_makes_way_for_a_new_one)
{
    struct http_settings settings = fixture_settings();
    struct peer peers[3]; /* idle for longest, used since, new */

    settings.connections_max = 3;
    start_with(&settings);
    peer_send_str(&peer, "GET /hold?busy HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    for (size_t i = 0; i < 2; i++) {
        peer_connect(&peers[i], &fixture);
        cr_assert(fixture_until_connections(&fixture, 2 + i));
    }
    peer_send_str(&peers[1], HELLO);
    cr_assert(peer_gets(&peers[1], "\r\n\r\nhi"));
    peer_connect(&peers[2], &fixture);
    peer_send_str(&peers[2], HELLO);
    cr_assert(peer_gets(&peers[2], "\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peers[0]));
    cr_assert(fixture_until_connections(&fixture, 3));
    peer_send_str(&peers[1], HELLO);
    cr_assert(peer_gets_count(&peers[1], "\r\n\r\nhi", 2));
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "\r\n\r\nbusy"));
    for (size_t i = 0; i < 3; i++)
        peer_close(&peers[i]);
    finish();
}

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

Test(http_server, drains)
{
    struct peer idle;
    bool is_drained = false;

    start();
    peer_connect(&idle, &fixture);
    peer_send_str(&peer, "GET /hold?late HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    cr_assert(fixture_until_connections(&fixture, 2));
    http_server_drain(fixture.server, 4000, on_drained, &is_drained);
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

Test(http_server, cuts_what_is_open_when_the_grace_ends)
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

Test(http_server, drained_is_told_later_also_without_connections)
{
    struct http_settings settings = fixture_settings();
    bool is_drained = false;

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    http_server_drain(fixture.server, 30, on_drained, &is_drained);
    cr_assert_not(is_drained);
    cr_assert(test_loop_until_set(&fixture.loop, &is_drained, FIXTURE_TIMEOUT_MS));
    fixture_finish(&fixture);
}

static void leave_stale_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

Test(http_server, closes_in_every_state)
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

Test(http_server, closes_while_a_connection_is_about_to_go_on)
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

Test(http_server, listens_on_unix_sockets_and_replaces_a_stale_one)
{
    struct http_settings settings = fixture_settings();
    char path[] = "/tmp/http-test-XXXXXX", address[64];

    cr_assert(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    for (int turn = 0; turn < 2; turn++) {
        fixture_start(&fixture, &settings, address);
        cr_assert_str_eq(fixture.address, address);
        peer_connect(&peer, &fixture);
        peer_send_str(&peer, HELLO "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
        cr_assert(fixture_until(&fixture, is_told, &fixture));
        cr_assert_eq(fixture.told, TOLD_DELIVERED);
        finish();
        leave_stale_socket(address + 5);
    }
    unlink(address + 5);
    rmdir(path);
}

/* A unix socket knows no acknowledgement but that all was read, and no reset but one that tells of what was not. */
Test(http_server, tells_what_was_delivered_to_a_unix_socket_that_is_closed)
{
    static const enum told TOLD[] = {TOLD_NOT_DELIVERED, TOLD_DELIVERED};
    struct http_settings settings = fixture_settings();
    char path[] = "/tmp/http-test-XXXXXX", address[64];

    cr_assert(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    for (size_t reads = 0; reads < 2; reads++) {
        fixture_start(&fixture, &settings, address);
        peer_connect(&peer, &fixture);
        peer_pause(&peer, !reads);
        peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
        if (reads)
            cr_assert(peer_gets(&peer, "secret"));
        else
            test_loop_for(&fixture.loop, 20);
        peer_close(&peer);
        cr_assert(fixture_until(&fixture, is_told, &fixture));
        cr_assert_eq(fixture.told, TOLD[reads]);
        fixture_finish(&fixture);
    }
    rmdir(path);
}

/* A unix socket's answer counts as delivered when it is read, so a client that does not read can be tested there. */
Test(http_server, waits_for_the_delivery_and_only_then_goes_on)
{
    struct http_settings settings = fixture_settings();
    char path[] = "/tmp/http-test-XXXXXX", address[64];

    cr_assert(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    fixture_start(&fixture, &settings, address);
    peer_connect(&peer, &fixture);
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 30);
    peer_send_str(&peer, HELLO);
    test_loop_for(&fixture.loop, 30);
    cr_assert_eq(fixture.told, TOLD_NOTHING);
    cr_assert_eq(fixture.handled, 1);
    peer_pause(&peer, false);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
    rmdir(path);
}

Test(http_server, survives_running_out_of_descriptors)
{
    struct rlimit limit, tight;
    struct peer refused;
    int next;

    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_connect(&refused, &fixture);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    next = dup(0);
    close(next);
    tight = (struct rlimit){(rlim_t)next, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    cr_assert(peer_is_ended(&refused), "taken and closed, not left waiting");
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", 2));
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    peer_close(&refused);
    peer_connect(&refused, &fixture);
    peer_send_str(&refused, HELLO);
    cr_assert(peer_gets(&refused, "\r\n\r\nhi"));
    peer_close(&refused);
    finish();
}

Test(http_server, peers_that_have_gone_before_they_are_accepted_are_nobodys_trouble)
{
    int64_t shed = metric_values[METRIC_CONNECTIONS_SHED];
    struct peer gone;

    start();
    peer_connect(&gone, &fixture);
    peer_reset(&gone);
    peer_connect(&gone, &fixture);
    peer_close(&gone);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert(fixture_until_connections(&fixture, 1));
    cr_assert_eq(metric_values[METRIC_CONNECTIONS_SHED], shed);
    finish();
}

Test(http_server, names_an_ipv4_peer_of_an_ipv6_listener_as_ipv4)
{
    struct http_settings settings = fixture_settings();
    char port[16];

    fixture_start(&fixture, &settings, "[::]:0");
    snprintf(port, sizeof port, "%s", strrchr(fixture.address, ':'));
    snprintf(fixture.address, sizeof fixture.address, "127.0.0.1%s", port);
    peer_connect(&peer, &fixture);
    peer_send_str(&peer, "GET /about HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "|127.0.0.1|0"), "%s", peer.input);
    finish();
}

Test(http_server, listens_on_ipv6)
{
    struct http_settings settings = fixture_settings();

    fixture_start(&fixture, &settings, "[::1]:0");
    cr_assert(strncmp(fixture.address, "[::1]:", 6) == 0);
    peer_connect(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
}

Test(http_server, refuses_addresses_it_cannot_use)
{
    static const char *const ADDRESSES[] = {"",
                                            "127.0.0.1",
                                            "localhost:0",
                                            "127.0.0.1:65536",
                                            "127.0.0.1:x",
                                            "::1:80",
                                            "[::1]",
                                            "[::1",
                                            "unix:/nowhere/at/all/socket"};
    struct http_settings settings = fixture_settings();
    char bound[HTTP_ADDRESS_BYTES];

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    for (size_t i = 0; i < sizeof ADDRESSES / sizeof ADDRESSES[0]; i++)
        cr_assert_neq(http_server_listen(fixture.server, ADDRESSES[i], false, bound), 0, "%s", ADDRESSES[i]);
    cr_assert_eq(http_server_listen(fixture.server, fixture.address, false, bound), UV_EADDRINUSE);
    fixture_finish(&fixture);
}

Test(http_server, two_servers_share_a_port)
{
    struct http_settings settings = fixture_settings();
    char first[HTTP_ADDRESS_BYTES], second[HTTP_ADDRESS_BYTES];

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    cr_assert_eq(http_server_listen(fixture.server, "127.0.0.1:0", true, first), 0);
    cr_assert_eq(http_server_listen(fixture.server, first, true, second), 0);
    cr_assert_str_eq(first, second);
    fixture_finish(&fixture);
}

Test(http_server, what_breaks_the_contract_of_handlers_stops_the_node, .signal = SIGABRT)
{
    start();
    peer_send_str(&peer, "GET /mute HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 1000);
}

Test(http_server, a_second_reply_stops_the_node, .signal = SIGABRT)
{
    start();
    peer_send_str(&peer, "GET /twice HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 1000);
}

Test(http_server, a_header_that_would_split_the_reply_stops_the_node, .signal = SIGABRT)
{
    start();
    peer_send_str(&peer, "GET /split HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 1000);
}

Test(http_server, shows_a_request_as_it_was_sent)
{
    char id[64] = "";

    start();
    peer_send_str(&peer, "DELETE http://t/about?a=b HTTP/1.1\r\nHost: t\r\nX-a: 1\r\nx_a: 3\r\nX-A: 2\r\n"
                         "Content-Length: 2\r\n\r\nab");
    cr_assert(peer_gets(&peer, "\r\n\r\n1 DELETE|http://t/about?a=b|/about|a=b|2 1|127.0.0.1|1"), "%s", peer.input);
    snprintf(id, sizeof id, "X-Same-Id: %.30s\r\n", strstr(peer.input, "X-Request-Id: ") + strlen("X-Request-Id: "));
    cr_assert(strstr(peer.input, id), "%s", peer.input);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "the body is skipped");
    finish();
}

Test(http_server, answers_json_and_500_where_it_did_not_fit)
{
    start();
    peer_send_str(&peer, "GET /json HTTP/1.1\r\nHost: t\r\n\r\nGET /json-too-large HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "\r\n\r\n{\"a\":1}HTTP/1.1 500 Internal Server Error"));
    cr_assert(peer_gets(&peer, "error 500."));
    cr_assert_eq(peer_count(&peer, "Content-Type: application/json\r\n"), 1);
    finish();
}

Test(http_server, gives_memory_back_after_a_large_answer_and_answers_on)
{
    start();
    for (int i = 0; i < 3; i++) {
        peer_forget(&peer);
        peer_send_str(&peer, "GET /big?400000 HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
        cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    }
    finish();
}

enum { MANY = CORKED_MAX + 2 };

static bool all_are_handled(void *arg)
{
    return fixture.handled == *(const unsigned *)arg;
}

static void run_until_handled(unsigned count)
{
    cr_assert(fixture_until(&fixture, all_are_handled, &count));
}

/* Each asks for a body of its own. */
static void ask_numbered(struct peer *peers, size_t count)
{
    char request[256];

    for (size_t i = 0; i < count; i++) {
        peer_connect(&peers[i], &fixture);
        snprintf(request, sizeof request, "GET /hello?n%zu. HTTP/1.1\r\nHost: t\r\n\r\n", i);
        peer_send_str(&peers[i], request);
    }
    run_until_handled((unsigned)count);
}

static void assert_has_its_own_answer(struct peer *asker, size_t i)
{
    char body[32];

    snprintf(body, sizeof body, "\r\n\r\nn%zu.", i);
    cr_assert(peer_gets(asker, "\r\n\r\n"), "answer %zu is missing", i);
    cr_assert(strncmp(asker->input, "HTTP/1.1 200", 12) == 0);
    cr_assert_eq(peer_count(asker, "HTTP/1.1 "), 1, "answer %zu has company", i);
    cr_assert(strstr(asker->input, body), "answer %zu is another's", i);
}

Test(http_server, corked_answers_wait_and_those_without_room_do_not)
{
    struct peer peers[MANY];

    start();
    http_server_cork(fixture.server);
    ask_numbered(peers, MANY);
    for (size_t i = CORKED_MAX; i < MANY; i++)
        assert_has_its_own_answer(&peers[i], i);
    test_loop_for(&fixture.loop, 20);
    for (size_t i = 0; i < CORKED_MAX; i++)
        cr_assert_eq(peers[i].bytes, 0);
    http_server_uncork(fixture.server);
    for (size_t i = 0; i < CORKED_MAX; i++)
        assert_has_its_own_answer(&peers[i], i);
    cr_assert_eq(fixture.server->answers.cork.scratch.len, 0);

    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "uncorked, an answer leaves at once");
    for (size_t i = 0; i < MANY; i++)
        peer_close(&peers[i]);
    finish();
}

Test(http_server, a_corked_answer_is_dropped_with_its_connection)
{
    struct peer peers[3];

    start();
    http_server_cork(fixture.server);
    ask_numbered(peers, 3);
    peer_reset(&peers[1]);
    cr_assert(fixture_until_connections(&fixture, 3));
    http_server_uncork(fixture.server);
    assert_has_its_own_answer(&peers[0], 0);
    assert_has_its_own_answer(&peers[2], 2);
    peer_close(&peers[0]);
    peer_close(&peers[2]);
    finish();
}

Test(http_server, a_connection_goes_on_behind_its_corked_answer)
{
    struct peer last;

    start();
    http_server_cork(fixture.server);
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n" HELLO HELLO);
    peer_connect(&last, &fixture);
    peer_send_str(&last, "GET /hello?n0. HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    run_until_handled(2);
    http_server_uncork(fixture.server);
    assert_has_its_own_answer(&last, 0);
    cr_assert(peer_is_ended(&last));
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    cr_assert(strncmp(peer.input, "HTTP/1.1 201", 12) == 0);
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    peer_close(&last);
    finish();
}

Test(http_server, closes_while_answers_are_corked)
{
    struct peer peers[2];

    start();
    http_server_cork(fixture.server);
    ask_numbered(peers, 2);
    fixture_close(&fixture);
    for (size_t i = 0; i < 2; i++) {
        cr_assert(peer_is_ended(&peers[i]));
        cr_assert_eq(peers[i].bytes, 0);
        peer_close(&peers[i]);
    }
    peer_close(&peer);
    cr_assert(test_loop_finish(&fixture.loop));
}

Test(http_server, a_hundred_clients_at_once)
{
    struct peer peers[100];

    start();
    for (size_t i = 0; i < 99; i++)
        peer_connect(&peers[i], &fixture);
    for (int turn = 1; turn <= 3; turn++) {
        for (size_t i = 0; i < 99; i++)
            peer_send_str(&peers[i], turn == 2 ? "GET /later?hi HTTP/1.1\r\nHost: t\r\n\r\n" : HELLO);
        for (size_t i = 0; i < 99; i++)
            cr_assert(peer_gets_count(&peers[i], "\r\n\r\nhi", (size_t)turn));
    }
    for (size_t i = 0; i < 99; i++)
        peer_close(&peers[i]);
    finish();
}
