/* --check-socket: a gateway on the node's machine asks over a Unix socket, whatever others on the network must show. */
#include "certificates.h"
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"
#include "losses.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 256 };

static struct fixture fixture;
static char socket_path[PATH_BYTES];

static void start(void)
{
    fixture_start(&fixture, 0, NULL);
    snprintf(socket_path, sizeof socket_path, "%.90s/check.sock", fixture.folder);
}

static void finish(void)
{
    fixture_stop(&fixture);
    leak_guard();
}

TestSuite(check_socket, .init = start, .fini = finish, .timeout = TEST_WITHIN_S);

static int check(const char *secret, const char *fields)
{
    struct http_answer answer;
    struct http_client client;
    char all[512];

    snprintf(all, sizeof all, "X-Original-Method: GET\r\nX-Original-URI: /v1/patients/1\r\n%s", fields);
    http_client_connect_socket(&client, socket_path);
    http_client_call(&client, &(struct http_call){.target = "/check/auth-request", .bearer = secret, .fields = all},
                     &answer);
    http_client_close(&client);
    return answer.status;
}

/* Neither a certificate nor a PROXY header is asked for, which only say who somebody on the network is. */
Test(check_socket, needs_nothing_but_the_right_to_connect)
{
    struct certificate ca, own;
    struct fixture_key key;
    char paths[3][PATH_BYTES];
    struct stat file;

    certificate_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&own, &(struct certificate_wish){.name = "own", .names = "DNS:localhost", .issuer = &ca});
    const char *const contents[] = {own.full, own.key_pem, ca.pem};
    for (size_t i = 0; i < 3; i++) {
        snprintf(paths[i], PATH_BYTES, "%.90s/%zu.pem", fixture.folder, i);
        certificate_write(paths[i], contents[i]);
    }
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_add_node(&fixture,
                     (const char *const[]){"--check-socket", socket_path, "--internal-tls-cert", paths[0],
                                           "--internal-tls-key", paths[1], "--internal-client-ca", paths[2],
                                           "--internal-proxy-protocol", "--trusted-proxies", "127.0.0.1", NULL});
    cr_expect(stat(socket_path, &file) == 0 && file.st_mode == (S_IFSOCK | 0660));
    cr_expect_eq(check(key.secret, ""), 200);
    fixture_revoke_key(&fixture, &key);
    cr_expect_eq(check(key.secret, ""), 401);
    certificate_free(&ca);
    certificate_free(&own);
}

static int count_from(const char *client)
{
    char *log = node_log(&fixture.nodes[0]), *at = log, text[64];
    int count = 0;

    snprintf(text, sizeof text, " ip=%s ", client);
    while ((at = strstr(at, text)) != NULL) {
        count++;
        at++;
    }
    free(log);
    return count;
}

/* Whoever may connect is the gateway, so what it says of its client counts. */
Test(check_socket, the_gateway_says_who_the_client_is)
{
    static const struct {
        const char *fields, *client;
    } CASES[] = {
        {"X-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9"},
        {"X-Forwarded-For: 198.51.100.1, 203.0.113.8\r\n", "203.0.113.8"},
        {"X-Forwarded-For: 203.0.113.7, 10.0.0.2\r\n", "203.0.113.7"},
        {"X-Forwarded-For: garbage\r\n", "127.0.0.1"},
        {"", "127.0.0.1"},
    };

    fixture_add_node(&fixture, (const char *const[]){"--check-socket", socket_path, "--access-log-sample", "1",
                                                     "--trusted-proxies", "10.0.0.0/8", NULL});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int before = count_from(CASES[i].client);

        cr_expect_eq(check(fixture.manager.secret, CASES[i].fields), 200);
        cr_expect_eq(count_from(CASES[i].client), before + 1, "%s", CASES[i].fields);
    }
}

Test(check_socket, without_trusted_proxies_too)
{
    fixture_add_node(&fixture, (const char *const[]){"--check-socket", socket_path, "--access-log-sample", "1", NULL});
    cr_expect_eq(check(fixture.manager.secret, "X-Forwarded-For: 198.51.100.1, 203.0.113.8\r\n"), 200);
    cr_expect_eq(count_from("203.0.113.8"), 1);
}

static void expect_unfit(const char *path, int code, const char *says)
{
    const char *const args[] = {
        "serve",       "--public-origin", NODE_ORIGIN, "--listen", "127.0.0.1:0", "--internal-listen",
        "127.0.0.1:0", "--check-socket",  path,        NULL};
    char *err;

    cr_expect_eq(fixture_run(&fixture, args, NULL, NULL, &err), code, "%s: %s", path, err);
    cr_expect(strstr(err, "--check-socket") && strstr(err, says), "%s: %s", path, err);
    free(err);
}

/* What a node leaves that was killed is replaced; what one listens on is not, though it is paused. */
Test(check_socket, only_a_dead_nodes_file_is_replaced)
{
    const char *const args[] = {"--check-socket", socket_path, NULL};

    fixture_add_node(&fixture, args);
    process_signal(&fixture.nodes[0].process, SIGSTOP);
    expect_unfit(socket_path, 1, "is in use");
    process_signal(&fixture.nodes[0].process, SIGCONT);
    cr_expect_eq(check(fixture.manager.secret, ""), 200);
    node_kill(&fixture.nodes[0]);
    cr_assert_eq(access(socket_path, F_OK), 0);
    fixture.node_count = 0;
    fixture_add_node(&fixture, args);
    cr_expect_eq(check(fixture.manager.secret, ""), 200);
    node_stop(&fixture.nodes[0]);
    cr_expect_eq(access(socket_path, F_OK), -1, "the file stays");
}

Test(check_socket, a_path_that_cannot_be_is_refused_at_start)
{
    static const char LONG[] = "/23456789012345678901234567890123456789012345678901234567890123456789"
                               "012345678901234567890123456789012345678.";

    expect_unfit("unix:/tmp/none", 2, "absolute path");
    expect_unfit("check.sock", 2, "absolute path");
    expect_unfit(LONG, 2, "107 bytes");
    expect_unfit("/nowhere/at/all", 1, "no such file");
}

static void await_answer(const char *secret)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (access(socket_path, F_OK) != 0 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    cr_expect_eq(check(secret, ""), 200);
}

/* As a cleaner of temporary files does. A second removal is a second loss. */
Test(check_socket, is_made_again_and_told_when_its_file_is_gone)
{
    fixture_add_node(&fixture, (const char *const[]){"--check-socket", socket_path, NULL});
    cr_assert_eq(unlink(socket_path), 0);
    await_answer(fixture.manager.secret);
    losses_expect_told(&fixture, LOSS_SOCKET, "chatelaine_sockets_lost_total");
    cr_assert_eq(unlink(socket_path), 0);
    await_answer(fixture.manager.secret);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_sockets_lost_total"), 2);
    node_stop(&fixture.nodes[0]);
    cr_expect_eq(access(socket_path, F_OK), -1, "the file stays");
}
