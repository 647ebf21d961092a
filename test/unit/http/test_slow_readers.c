/* Responses that wait for their readers, and the limit on all of them together. */
#include "base/mem.h"
#include "http/server_internal.h"

#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"
#include "tls_peer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

TestSuite(http_slow_readers, .fini = leak_guard);

static size_t held_bytes(enum burden_kind kind)
{
    return fixture.server->conns.burdens.kinds[kind].bytes;
}

Test(http_slow_readers, a_slow_reader_gets_all_of_a_large_answer)
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

/* Any reader may be slow, but all of them together may not fill the memory. */
Test(http_slow_readers, cuts_whoever_makes_too_much_wait)
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

/* A reader of a small response is not cut because of readers of large ones. */
Test(http_slow_readers, cuts_whose_unread_answers_are_largest)
{
    enum { PEERS = 4 };
    struct peer peers[PEERS];
    const char *body;

    fixture_needs_system = true; /* how much it takes counts */
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

Test(http_slow_readers, keeps_no_copy_of_what_lasts)
{
    size_t held;

    tls_peer_skip("records do not last");
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

/* What each of many strangers may have sent before stopping. */
static const struct unfinished_case {
    const char *beginning;
    size_t more;
} UNFINISHED[] = {
    {"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n", 50000},
    {"POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nc351\r\n", 50000},
    {"GET /hello HTTP/1.1\r\nHost: t\r\nX: ", 15000},
    {"POST /unread HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n", 0},
};

Test(http_slow_readers, cuts_whose_unfinished_requests_are_largest)
{
    enum { PEERS = 14, BOUND = 48 * 1024 };
    static struct peer peers[PEERS];
    static char more[50000];

    memset(more, 'a', sizeof more);
    for (size_t n = 0; n < sizeof UNFINISHED / sizeof *UNFINISHED; n++) {
        struct http_settings settings = fixture_settings();

        settings.limits.waiting_max_bytes = BOUND;
        settings.limits.head_timeout_ms = settings.limits.body_timeout_ms = settings.limits.body_total_timeout_ms =
            600 * 1000;
        settings.limits.body_min_bytes_per_s = 0;
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

static bool is_held(void *arg)
{
    (void)arg;
    return fixture.held;
}

/* A body that has come counts until its request is answered, however long it has to wait for that. */
Test(http_slow_readers, counts_bodies_that_wait)
{
    enum { BYTES = 20000 };
    static char body[BYTES];

    struct http_settings settings = fixture_settings();

    memset(body, 'a', sizeof body);
    start_with(&settings);
    peer_send_str(&peer, "POST /echo-held HTTP/1.1\r\nHost: t\r\nContent-Length: 20000\r\n\r\n");
    peer_send(&peer, body, sizeof body);
    cr_assert(fixture_until(&fixture, is_held, NULL));
    test_loop_for(&fixture.loop, 1);
    cr_expect_geq(held_bytes(BURDEN_INPUT), (size_t)BYTES);
    fixture_answer_held(&fixture);
    cr_assert(peer_gets(&peer, "HTTP/1.1 200"));
    cr_expect_eq(held_bytes(BURDEN_INPUT), 0);
    finish();
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

/* While the response waits, nothing arrives except one piece of a request. Once everything is taken, the loop
 * sleeps. */
Test(http_slow_readers, a_slow_reader_gets_a_large_answer_that_came_late)
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

/* The response may come while a 100 Continue still waits and the socket has room again. */
Test(http_slow_readers, what_is_sent_later_comes_behind_what_waits)
{
    enum { BYTES = 10000000 };
    char *big = mem_alloc(BYTES), *dropped = mem_alloc(BYTES);
    struct conn *conn;
    ssize_t got;

    tls_peer_skip("it sends without a session");
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

/* Each would fit into the socket's buffer, but not all of them together, so the server stops handling them. */
Test(http_slow_readers, a_slow_reader_gets_all_of_many_small_answers)
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
