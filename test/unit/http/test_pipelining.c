/* Requests sent ahead and half-closed clients: every request is answered, in order. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

TestSuite(http_pipelining, .fini = leak_guard);

/* Sends count requests of one line each, numbered by their query, in as few segments as the kernel likes. */
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

Test(http_pipelining, answers_a_hundred_pipelined_requests_in_order)
{
    start();
    send_numbered("/hello", 100);
    assert_numbered_answers(100);
    finish();
}

Test(http_pipelining, answers_pipelined_requests_in_order_when_handlers_wait)
{
    start();
    send_numbered("/later", 50);
    assert_numbered_answers(50);
    finish();
}

Test(http_pipelining, stops_reading_while_much_is_sent_ahead_and_loses_nothing)
{
    start();
    peer_send_str(&peer, "GET /hold?n HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    /* About 100 KiB, more than the stash; overflowing it would stop the process. */
    send_numbered("/hello", 3000);
    test_loop_for(&fixture.loop, 20);
    cr_assert_eq(fixture.handled, 1);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets_count(&peer, "200 OK", 3001));
    cr_assert_eq(fixture.handled, 3001);
    finish();
}

Test(http_pipelining, answers_pipelined_requests_in_order_whatever_they_wait_for)
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

Test(http_pipelining, answers_a_half_closed_client_then_closes)
{
    start();
    peer_send_str(&peer, HELLO HELLO);
    peer_half_close(&peer);
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    finish();
}

/* By then the socket reports only changes: the end arrives with the last bytes, and nothing after it. */
Test(http_pipelining, sees_the_end_of_input_that_comes_with_the_last_request)
{
    start();
    for (size_t i = 1; i <= 2; i++) {
        peer_send_str(&peer, HELLO);
        cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", i));
    }
    peer_send_at_once(&peer, HELLO);
    peer_half_close(&peer);
    cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", 3));
    cr_assert(peer_is_ended(&peer));
    finish();
}

/* Twice more than one read takes, in one piece, with single requests between and after. */
Test(http_pipelining, reads_on_after_a_flood)
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

Test(http_pipelining, answers_a_client_that_half_closes_while_its_request_is_handled)
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
