/* Handshakes: which there are, when, and what becomes of the connection. What comes after them is tested by running the
 * tests of plain connections over TLS (unit_http_tls). */
#include "base/clock.h"
#include "base/metrics.h"
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"
#include "tls/session.h"
#include "tls_peer.h"

#include "http/server_internal.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

/* From 203.0.113.9. */
#define PROXY_HEADER "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\xc6\x33\x64\x01\x30\x39\0\x50"

static void want_tls(void)
{
    tls_peer_is_wanted = true;
}

TestSuite(http_tls, .init = want_tls, .fini = leak_guard);

/* A server, and no peer yet. */
static void start_alone(const struct http_settings *settings)
{
    fixture_start(&fixture, settings, "127.0.0.1:0");
}

static void check_hello(struct peer *asker)
{
    peer_send_str(asker, HELLO);
    cr_assert(peer_gets(asker, "\r\n\r\nhi"));
}

/* Whether so many connections have had a turn. */
static bool have_sessions(void *arg)
{
    const struct list *all = &fixture.server->conns.all;
    size_t count = 0;

    for (struct list *node = all->next; node != all; node = node->next)
        count += LIST_ENTRY(node, struct conn, in_all)->tls != NULL;
    return count >= *(const size_t *)arg;
}

static bool holds_input(void *arg UNUSED)
{
    return fixture.server->conns.burdens.kinds[BURDEN_INPUT].bytes > TLS_RECORD_BYTES;
}

Test(http_tls, a_request_may_come_with_the_end_of_the_handshake)
{
    start();
    /* The peer has sent its last flight, which the server has not read yet. */
    peer_send_at_once(&peer, HELLO HELLO);
    cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", 2));
    cr_assert_eq(metric_values[METRIC_TLS_FULL], 1);
    finish();
}

Test(http_tls, much_may_come_with_the_end_of_the_handshake)
{
    enum { COUNT = 3000 }; /* about 100 KiB */
    char *many = calloc(COUNT, sizeof HELLO);

    start();
    for (int i = 0; i < COUNT; i++)
        memcpy(many + (size_t)i * (sizeof HELLO - 1), HELLO, sizeof HELLO - 1);
    peer_send_str(&peer, many);
    cr_assert(peer_gets_count(&peer, "\r\n\r\nhi", COUNT));
    free(many);
    finish();
}

Test(http_tls, the_server_says_that_it_ends)
{
    start();
    peer_send_str(&peer, "GET /hello?hi HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(tls_session_state(peer.tls), TLS_ENDED);
    cr_assert_not(peer.is_reset);
    finish();
}

Test(http_tls, close_notify_ends_the_peers_side)
{
    start();
    check_hello(&peer);
    tls_peer_end(&peer); /* its socket stays open */
    cr_assert(peer_is_ended(&peer));
    finish();
}

Test(http_tls, a_truncated_body_is_no_body)
{
    start();
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    cr_assert(fixture_until_connections(&fixture, 1));
    test_loop_for(&fixture.loop, 20);
    shutdown(peer.fd, SHUT_WR);
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(fixture.bodies_failed, 1);
    cr_assert_null(strstr(peer.input, "200 OK"));
    finish();
}

Test(http_tls, an_altered_record_ends_the_connection_before_its_request)
{
    struct buf records;

    start();
    check_hello(&peer);
    buf_init(&records, 1024);
    cr_assert(tls_peer_seal(&peer, HELLO, strlen(HELLO), &records));
    records.ptr[records.len - 20] ^= 1;
    peer_send_raw(&peer, records.ptr, records.len);
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(fixture.handled, 1);
    buf_finish(&records);
    finish();
}

Test(http_tls, plain_http_is_told_so)
{
    struct http_settings settings = fixture_settings();

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    peer_send_raw(&peer, HELLO, strlen(HELLO));
    cr_assert(peer_gets(&peer, "HTTP/1.1 400 Bad Request\r\n"));
    cr_assert(peer_gets(&peer, "error 1400."));
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    cr_assert_eq(fixture.handled, 0);
    finish();
}

Test(http_tls, what_is_neither_ends_with_an_alert)
{
    struct http_settings settings = fixture_settings();

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    peer_send_raw(&peer, "\x16\x03\x01\x00\x04\x7f\x00\x00\x00", 9);
    cr_assert(peer_is_ended(&peer));
    cr_assert_not(peer.is_reset);
    cr_assert_eq(peer.bytes, 7);
    cr_assert_eq(peer.input[0], 21, "the type of an alert");
    cr_assert_eq(metric_values[METRIC_TLS_FAILED], 1);
    finish();
}

Test(http_tls, a_handshake_has_its_time)
{
    struct http_settings settings = fixture_settings();
    struct peer silent;

    settings.limits.head_timeout_ms = 3000; /* enough for the other peer, on a busy machine too */
    start_with(&settings);
    check_hello(&peer);
    peer_connect_plainly(&silent, &fixture);
    cr_assert(peer_is_ended(&silent));
    cr_assert_eq(metric_values[METRIC_TLS_TIMEOUT], 1);
    peer_close(&silent);
    peer_connect_plainly(&silent, &fixture);
    peer_send_raw(&silent, "\x16\x03\x01\x02", 4);
    cr_assert(peer_is_ended(&silent));
    cr_assert_eq(metric_values[METRIC_TLS_TIMEOUT], 2);
    /* Idle, the first one has more time. */
    check_hello(&peer);
    peer_close(&silent);
    finish();
}

/* Once the server has answered its first flight. */
Test(http_tls, who_resets_the_connection_has_failed)
{
    struct http_settings settings = fixture_settings();
    struct buf first;

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    buf_init(&first, 4096);
    tls_peer_begin(&peer, &first);
    peer_pause(&peer, true);
    peer_send_raw(&peer, first.ptr, first.len);
    cr_assert(fixture_until(&fixture, have_sessions, &(size_t){1}));
    peer_reset(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    cr_assert_eq(metric_values[METRIC_TLS_FAILED], 1);
    buf_finish(&first);
    fixture_finish(&fixture);
}

/* A load balancer's probe. */
Test(http_tls, who_goes_without_a_byte_has_not_failed)
{
    struct http_settings settings = fixture_settings();

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    cr_assert(fixture_until_connections(&fixture, 1));
    peer_close(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    cr_assert_eq(metric_values[METRIC_TLS_FAILED], 0);
    peer_connect_plainly(&peer, &fixture);
    peer_send_raw(&peer, "\x16\x03\x01\x02", 4);
    cr_assert(fixture_until_connections(&fixture, 1));
    peer_close(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    cr_assert_eq(metric_values[METRIC_TLS_FAILED], 1);
    peer_connect_plainly(&peer, &fixture);
    cr_assert(fixture_until_connections(&fixture, 1));
    peer_reset(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    cr_assert_eq(metric_values[METRIC_TLS_FAILED], 1);
    fixture_finish(&fixture);
}

Test(http_tls, the_longest_pending_handshake_makes_way)
{
    enum { MAX = 3 };
    struct http_settings settings = fixture_settings();
    struct peer pending[MAX];

    settings.limits.tls_handshakes_max = MAX;
    start_with(&settings);
    check_hello(&peer);
    for (size_t i = 0; i < MAX; i++) {
        peer_connect_plainly(&pending[i], &fixture);
        cr_assert(fixture_until_connections(&fixture, 2 + i));
    }
    /* The first of them has sent something since. */
    peer_send_raw(&pending[0], "\x16\x03\x01\x02", 4);
    cr_assert(fixture_until(&fixture, have_sessions, &(size_t){2}));
    peer_close(&peer);
    peer_connect(&peer, &fixture);
    check_hello(&peer);
    cr_assert_eq(metric_values[METRIC_TLS_REFUSED], 1);
    cr_assert(peer_is_ended(&pending[1]));
    cr_assert_not(pending[0].is_ended);
    cr_assert_not(pending[2].is_ended);
    for (size_t i = 0; i < MAX; i++)
        peer_close(&pending[i]);
    finish();
}

Test(http_tls, pending_handshakes_count_as_memory)
{
    struct http_settings settings = fixture_settings();

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    peer_send_raw(&peer, "\x16\x03\x01\x02", 4);
    cr_assert(fixture_until(&fixture, holds_input, NULL));
    finish();
}

Test(http_tls, a_record_that_arrives_in_part_counts_as_memory)
{
    struct burden *input;
    struct buf records;

    start();
    input = &fixture.server->conns.burdens.kinds[BURDEN_INPUT];
    check_hello(&peer);
    cr_assert_eq(input->bytes, 0);
    buf_init(&records, 1024);
    cr_assert(tls_peer_seal(&peer, HELLO, strlen(HELLO), &records));
    peer_send_raw(&peer, records.ptr, 20);
    cr_assert(fixture_until(&fixture, holds_input, NULL));
    peer_forget(&peer);
    peer_send_raw(&peer, records.ptr + 20, records.len - 20);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    cr_assert_eq(input->bytes, 0);
    buf_finish(&records);
    finish();
}

Test(http_tls, open_connections_keep_the_certificate_that_they_began_with)
{
    struct peer next;

    start();
    check_hello(&peer);
    tls_peer_forget_contexts();
    http_server_set_tls(fixture.server, tls_peer_server_context());
    peer_forget(&peer);
    check_hello(&peer);
    peer_connect(&next, &fixture); /* its client trusts only the new one */
    check_hello(&next);
    peer_close(&next);
    finish();
}

/* The end of a client's right. */

static int64_t in_31_days(void)
{
    return (time(NULL) + INT64_C(31) * 24 * 60 * 60) * 1000;
}

static void start_with_certificates(void)
{
    tls_peer_has_certificate = true;
    start();
    check_hello(&peer);
    peer_forget(&peer);
}

static void replace_client_ca(void)
{
    tls_peer_forget_contexts();
    http_server_set_tls(fixture.server, tls_peer_server_context());
}

static bool has_pieces(void *arg UNUSED)
{
    return fixture.pieces > 0;
}

static bool has_stream_gone(void *arg UNUSED)
{
    return fixture.streams_gone > 0;
}

static void begin_stream(void)
{
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /stream?1000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(fixture_until(&fixture, has_pieces, NULL));
}

Test(http_tls, an_expired_client_certificate_ends_its_connection)
{
    start_with_certificates();
    clock_replace_wall_for_test(in_31_days);
    peer_send_str(&peer, HELLO);
    cr_expect(peer_is_ended(&peer));
    cr_expect_eq(fixture.handled, 1);
    clock_replace_wall_for_test(NULL);
    finish();
}

Test(http_tls, an_expired_client_certificate_ends_a_stream)
{
    start_with_certificates();
    begin_stream();
    clock_replace_wall_for_test(in_31_days);
    peer_pause(&peer, false);
    cr_expect(peer_is_ended(&peer));
    cr_expect(fixture_until(&fixture, has_stream_gone, NULL));
    clock_replace_wall_for_test(NULL);
    finish();
}

Test(http_tls, another_client_ca_ends_idle_connections)
{
    start_with_certificates();
    replace_client_ca();
    cr_expect(peer_is_ended(&peer));
    finish();
}

Test(http_tls, another_client_ca_ends_streams)
{
    start_with_certificates();
    begin_stream();
    replace_client_ca();
    peer_pause(&peer, false);
    cr_expect(peer_is_ended(&peer));
    cr_expect_eq(fixture_until(&fixture, has_stream_gone, NULL), true);
    finish();
}

Test(http_tls, another_client_ca_ends_a_connection_after_the_request_that_came_before)
{
    start_with_certificates();
    peer_send_str(&peer, "GET /hold?hi HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    fixture_run_until_held(&fixture);
    replace_client_ca();
    fixture_answer_held(&fixture);
    cr_expect(peer_gets(&peer, "\r\n\r\nhi"));
    cr_expect(peer_is_ended(&peer));
    cr_expect_eq(fixture.handled, 2, "the next request is not handled");
    finish();
}

Test(http_tls, the_same_client_ca_ends_nothing)
{
    struct tls_context *before;

    start_with_certificates();
    before = tls_context_hold(tls_peer_server_context());
    http_server_set_tls(fixture.server, before);
    check_hello(&peer);
    tls_context_release(before);
    finish();
}

static bool trust_all(struct text peer_name UNUSED, void *arg UNUSED)
{
    return true;
}

static void start_behind_proxy(void)
{
    struct http_settings settings = fixture_settings();

    settings.trusts_proxy = trust_all;
    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
}

Test(http_tls, a_proxy_header_comes_first)
{
    start_behind_proxy();
    peer_send_raw(&peer, PROXY_HEADER, sizeof PROXY_HEADER - 1);
    tls_peer_open(&peer);
    peer_send_str(&peer, "GET /about HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "|203.0.113.9|"));
    finish();
}

Test(http_tls, the_handshake_may_come_in_one_piece_with_the_proxy_header)
{
    struct buf first;

    start_behind_proxy();
    buf_init(&first, 4096);
    buf_append(&first, PROXY_HEADER, sizeof PROXY_HEADER - 1);
    tls_peer_begin(&peer, &first);
    peer_send_raw(&peer, first.ptr, first.len);
    cr_assert(tls_peer_is_open(&peer));
    peer_send_str(&peer, "GET /about HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "|203.0.113.9|"));
    buf_finish(&first);
    finish();
}

Test(http_tls, a_drain_does_not_wait_for_handshakes)
{
    struct http_settings settings = fixture_settings();

    start_alone(&settings);
    peer_connect_plainly(&peer, &fixture);
    peer_send_raw(&peer, "\x16\x03\x01\x02", 4);
    cr_assert(fixture_until_connections(&fixture, 1));
    http_server_wane(fixture.server, 20);
    cr_assert(peer_is_ended(&peer));
    finish();
}

/* Many clients that come together: each is served, and so is one that is there already. */
Test(http_tls, many_handshakes_take_turns_with_requests)
{
    enum { MANY = 60 };
    struct peer many[MANY];
    struct buf first;

    start();
    for (size_t i = 0; i < MANY; i++) {
        peer_connect_plainly(&many[i], &fixture);
        buf_init(&first, 4096);
        tls_peer_begin(&many[i], &first);
        cr_assert_eq(send(many[i].fd, first.ptr, first.len, MSG_NOSIGNAL), (ssize_t)first.len);
        buf_finish(&first);
    }
    check_hello(&peer);
    for (size_t i = 0; i < MANY; i++) {
        cr_assert(tls_peer_is_open(&many[i]));
        check_hello(&many[i]);
        peer_close(&many[i]);
    }
    finish();
}
