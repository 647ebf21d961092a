/* Responses that leave together. */
#include "http/server_internal.h"

#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(http_cork, .fini = leak_guard);

enum { MANY = TURN_SLICE + 2 };

static bool all_are_handled(void *arg)
{
    return fixture.handled == *(const unsigned *)arg;
}

static void run_until_handled(unsigned count)
{
    cr_assert(fixture_until(&fixture, all_are_handled, &count));
}

/* Each peer asks for a body of its own. */
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

Test(http_cork, corked_answers_wait_and_those_without_room_do_not)
{
    struct peer peers[MANY];

    start();
    cork_close(&fixture.server->answers.cork);
    ask_numbered(peers, MANY);
    for (size_t i = TURN_SLICE; i < MANY; i++)
        assert_has_its_own_answer(&peers[i], i);
    test_loop_for(&fixture.loop, 20);
    for (size_t i = 0; i < TURN_SLICE; i++)
        cr_assert_eq(peers[i].bytes, 0);
    cork_open(&fixture.server->answers.cork);
    for (size_t i = 0; i < TURN_SLICE; i++)
        assert_has_its_own_answer(&peers[i], i);
    cr_assert_eq(fixture.server->answers.cork.scratch.len, 0);

    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "uncorked, an answer leaves at once");
    for (size_t i = 0; i < MANY; i++)
        peer_close(&peers[i]);
    finish();
}

Test(http_cork, a_corked_answer_is_dropped_with_its_connection)
{
    struct peer peers[3];

    start();
    cork_close(&fixture.server->answers.cork);
    ask_numbered(peers, 3);
    peer_reset(&peers[1]);
    cr_assert(fixture_until_connections(&fixture, 3));
    cork_open(&fixture.server->answers.cork);
    assert_has_its_own_answer(&peers[0], 0);
    assert_has_its_own_answer(&peers[2], 2);
    peer_close(&peers[0]);
    peer_close(&peers[2]);
    finish();
}

Test(http_cork, a_connection_goes_on_behind_its_corked_answer)
{
    struct peer last;

    start();
    cork_close(&fixture.server->answers.cork);
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n" HELLO HELLO);
    peer_connect(&last, &fixture);
    peer_send_str(&last, "GET /hello?n0. HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    run_until_handled(2);
    cork_open(&fixture.server->answers.cork);
    assert_has_its_own_answer(&last, 0);
    cr_assert(peer_is_ended(&last));
    cr_assert(peer_gets_count(&peer, "200 OK", 2));
    cr_assert(strncmp(peer.input, "HTTP/1.1 201", 12) == 0);
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    peer_close(&last);
    finish();
}

Test(http_cork, closes_while_answers_are_corked)
{
    struct peer peers[2];

    start();
    cork_close(&fixture.server->answers.cork);
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
