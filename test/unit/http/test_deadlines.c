/* Peers that take too long. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

TestSuite(http_deadlines, .fini = leak_guard);

Test(http_deadlines, times_out_heads_and_bodies_with_408_and_idle_connections_in_silence)
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
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    struct http_settings settings = fixture_settings();
    struct peer peers[COUNT]; /* at once, because each takes its time */

    settings.limits.head_timeout_ms = settings.limits.body_timeout_ms = settings.limits.idle_timeout_ms = 2000;
    fixture_start(&fixture, &settings, "127.0.0.1:0");
    for (size_t i = 0; i < COUNT; i++) {
        peer_connect(&peers[i], &fixture);
        peer_send_str(&peers[i], CASES[i].sent);
    }
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert(peer_is_ended(&peers[i]), "case %zu", i);
        cr_assert_not(peers[i].is_reset);
        cr_assert(strstr(peers[i].input, CASES[i].answer), "case %zu: %s", i, peers[i].input);
        cr_assert_eq(peer_count(&peers[i], "HTTP/1.1"), CASES[i].answer[0] ? 1 : 0);
        peer_close(&peers[i]);
    }
    fixture_finish(&fixture);
}

Test(http_deadlines, a_head_that_trickles_has_one_deadline_from_its_first_byte)
{
    struct http_settings settings = fixture_settings();

    settings.limits.head_timeout_ms = 1500; /* with TLS, of the handshake too */
    start_with(&settings);
    for (int i = 0; i < 300 && !peer.is_ended; i++) {
        peer_send_str(&peer, i == 0 ? "GET /hello HTTP/1.1\r\nX: " : "a");
        test_loop_for(&fixture.loop, 10);
    }
    cr_assert(peer.is_ended);
    cr_assert(peer_gets(&peer, "408 Request Timeout"));
    finish();
}

Test(http_deadlines, a_body_that_trickles_has_its_deadline_anew_with_each_byte)
{
    struct http_settings settings = fixture_settings();

    /* All pauses take longer than one may. A busy machine may lengthen each seven times. */
    settings.limits.body_timeout_ms = 1800;
    settings.limits.body_min_bytes_per_s = 0;
    start_with(&settings);
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\n");
    for (int i = 0; i < 8; i++) {
        test_loop_for(&fixture.loop, 250);
        peer_send_str(&peer, "a");
    }
    cr_assert(peer_gets(&peer, "\r\n\r\naaaaaaaa"), "%s", peer.input);
    finish();
}

/* A client that sends a byte from time to time never misses the deadline of the next one. */
static const struct trickle_case {
    const char *path, *answer;
    int64_t total_ms, bytes_per_s;
} TRICKLES[] = {
    {"/echo", "408 Request Timeout", 200, 0},
    {"/echo", "408 Request Timeout", 600 * 1000, 200},
    {"/unread", "401 Unauthorized", 600 * 1000, 0},
};

Test(http_deadlines, a_body_that_trickles_for_ever_ends)
{
    for (size_t i = 0; i < sizeof TRICKLES / sizeof *TRICKLES; i++) {
        struct http_settings settings = fixture_settings();
        char head[128];

        settings.limits.body_timeout_ms = 100;
        settings.limits.body_total_timeout_ms = TRICKLES[i].total_ms;
        settings.limits.body_min_bytes_per_s = TRICKLES[i].bytes_per_s;
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

Test(http_deadlines, a_body_that_is_slow_but_not_too_slow_is_read)
{
    struct http_settings settings = fixture_settings();
    static const char PIECE[] = "0123456789";

    /* All pieces take longer than the longest pause. A busy machine may lengthen each pause eighteen times. */
    settings.limits.body_timeout_ms = 1800;
    settings.limits.body_min_bytes_per_s = 10;
    start_with(&settings);
    peer_send_str(&peer, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200\r\n\r\n");
    for (int n = 0; n < 20; n++) {
        peer_send_str(&peer, PIECE);
        test_loop_for(&fixture.loop, 100);
    }
    cr_assert(peer_gets(&peer, "\r\n\r\n0123456789"), "%s", peer.input);
    finish();
}

Test(http_deadlines, cuts_a_client_that_reads_its_answer_a_little_at_a_time)
{
    struct http_settings settings = fixture_settings();
    static char taken[100 * 1024];

    settings.limits.write_timeout_ms = 200;
    settings.limits.write_min_bytes_per_s = 100 * 1000 * 1000;
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

Test(http_deadlines, cuts_a_client_that_does_not_read_its_answer)
{
    struct http_settings settings = fixture_settings();

    settings.limits.write_timeout_ms = 60;
    start_with(&settings);
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /big?30000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(fixture_until_connections(&fixture, 0));
    finish();
}
