#include "base/metrics.h"
#include "http/response.h"

#include "http_client.h"
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"
#include "tls_peer.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

    tls_peer_skip("an answer would take a handshake");
    settings.limits.connections_max = 1;
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
    struct peer peers[3]; /* longest idle, used since, new */

    settings.limits.connections_max = 3;
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

static void leave_stale_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
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

Test(http_server, survives_running_out_of_descriptors)
{
    struct rlimit limit, tight;
    struct peer refused;
    int next;

    tls_peer_skip("the peer cannot shake hands");
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

    fixture_needs_system = true;
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

    if (!machine_has_ipv6())
        cr_skip_test("this machine has no IPv6");
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

/* The libuv error of connecting to a port of 127.0.0.1. */
static int connect_to_port(const char *address)
{
    struct sockaddr_in target;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), result;

    cr_assert_eq(uv_ip4_addr("127.0.0.1", (int)strtol(strrchr(address, ':') + 1, NULL, 10), &target), 0);
    result = connect(fd, (struct sockaddr *)&target, sizeof target) == 0 ? 0 : uv_translate_sys_error(errno);
    close(fd);
    return result;
}

Test(http_server, refuses_connections_to_what_it_has_bound_until_it_is_opened)
{
    struct http_settings settings = fixture_settings();
    char bound[HTTP_ADDRESS_BYTES], same[HTTP_ADDRESS_BYTES];

    fixture_start(&fixture, &settings, "127.0.0.1:0");
    cr_assert_eq(http_server_bind(fixture.server, "127.0.0.1:0", false, bound), 0);
    cr_assert_eq(http_server_bind(fixture.server, bound, false, same), 0);
    cr_assert_str_eq(bound, same);
    cr_expect_eq(connect_to_port(bound), UV_ECONNREFUSED);
    cr_expect_eq(http_server_open(fixture.server), UV_EADDRINUSE, "the second cannot listen where the first does");
    cr_expect_eq(connect_to_port(bound), 0);
    fixture_finish(&fixture);
}

Test(http_server, two_servers_share_a_port)
{
    struct http_settings settings = fixture_settings();
    char first[HTTP_ADDRESS_BYTES], second[HTTP_ADDRESS_BYTES];

    fixture_needs_system = true;
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
    peer_is_ended(&peer);
}

Test(http_server, a_second_reply_stops_the_node, .signal = SIGABRT)
{
    start();
    peer_send_str(&peer, "GET /twice HTTP/1.1\r\nHost: t\r\n\r\n");
    peer_is_ended(&peer);
}

Test(http_server, a_header_that_would_split_the_reply_stops_the_node, .signal = SIGABRT)
{
    start();
    peer_send_str(&peer, "GET /split HTTP/1.1\r\nHost: t\r\n\r\n");
    peer_is_ended(&peer);
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
