/* A node as its operator sees it: policy files, limits of connections, probes, metrics. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

TestSuite(node, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static int ask_route(const struct fixture *fixture, const char *path, const struct fixture_key *key,
                     struct http_answer *ret_answer)
{
    return fixture_call(fixture, 0, &(struct http_call){.target = path, .bearer = key->secret}, ret_answer);
}

static void await_status(const struct fixture *fixture, const char *path, int status, const char *code)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    while ((ask_route(fixture, path, &fixture->manager, &answer) != status ||
            strcmp(http_answer_code(&answer), code) != 0) &&
           deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(answer.status, status, "%s: %s", path, answer.body);
    cr_expect_str_eq(http_answer_code(&answer), code, "%s", path);
}

Test(node, a_policy_file_is_read_at_start_and_again_on_sighup)
{
    char policy[PROCESS_PATH_BYTES] = "/tmp/unused";
    const char *more[] = {"--policy-file", policy, NULL};
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(policy, sizeof policy, "%.150s/policy.json", fixture.folder);
    file_write(policy, "{\"version\":1,\"routes\":[{\"path\":\"/v1/beds\",\"read\":null,\"write\":\"org:manage\"}]}");
    fixture_add_node(&fixture, more);
    await_status(&fixture, "/v1/beds/7", 403, "insufficient_scope");
    await_status(&fixture, "/v1/patients", 404, "not_found");

    file_write(policy, "{\"version\":1,\"routes\":[{\"path\":\"/v1/patients\",\"write\":\"patients:write\"}]}");
    process_signal(&fixture.nodes[0].process, SIGHUP);
    await_status(&fixture, "/v1/patients", 405, "method_not_allowed");
    await_status(&fixture, "/v1/beds/7", 404, "not_found");

    file_write(policy, "{\"version\":1,\"routes\":[{\"path\":\"/v1/patients\",\"read\":\"no:such\"}]}");
    process_signal(&fixture.nodes[0].process, SIGHUP);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (!file_contains(fixture.nodes[0].process.err_path, "the policy stays as it was") &&
           deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect(file_contains(fixture.nodes[0].process.err_path, "the policy stays as it was"));
    await_status(&fixture, "/v1/patients", 405, "method_not_allowed");
    fixture_stop(&fixture);
}

/* With that option the node does not start, and says a sentence in which the one word stands and the other does not. */
static void check_refusal(const char *policy_json, const char *option, const char *value, const char *named,
                          const char *not_named)
{
    char policy[PROCESS_PATH_BYTES];
    const char *args[] = {"serve",       "--public-origin", NODE_ORIGIN, "--listen", "127.0.0.1:0", "--internal-listen",
                          "127.0.0.1:0", "--policy-file",   policy,      option,     value,         NULL};
    struct fixture fixture;
    char *out, *err;

    fixture_start(&fixture, 0, NULL);
    snprintf(policy, sizeof policy, "%.150s/policy.json", fixture.folder);
    file_write(policy, policy_json);
    cr_expect_eq(fixture_run(&fixture, args, NULL, &out, &err), 2, "%s", err);
    cr_expect_not_null(strstr(err, named), "%s", err);
    cr_expect_null(strstr(err, not_named), "%s", err);
    free(out);
    free(err);
    fixture_stop(&fixture);
}

#define GOOD_POLICY "{\"version\":1,\"routes\":[{\"path\":\"/v1/beds\",\"read\":null}]}"
#define WRONG_POLICY "{\"version\":1,\"routes\":[{\"path\":\"/v1/whoami\",\"read\":null}]}"

Test(node, a_wrong_policy_file_stops_the_start)
{
    check_refusal(WRONG_POLICY, NULL, NULL, "/v1/whoami", "--trusted-proxies");
}

Test(node, wrong_client_ids_stop_the_start)
{
    check_refusal(GOOD_POLICY, "--device-clients", "agent, other", "--device-clients", "--policy-file");
}

Test(node, a_hasty_canary_stops_the_start)
{
    check_refusal(GOOD_POLICY, "--canary-interval-ms", "999", "--canary-interval-ms", "--policy-file");
}

Test(node, wrong_networks_stop_the_start)
{
    check_refusal(GOOD_POLICY, "--trusted-proxies", "nowhere", "--trusted-proxies", "--policy-file");
}

enum { LIMIT = 10, BEYOND = 5 };

/* The first half of a request, once the node has read it: its connection is busy. */
static void begin_requests(const struct fixture *fixture, struct http_client *clients, size_t count)
{
    static const char HALF[] = "GET /v1/whoami HTTP/1.1\r\nHost: t\r\n";

    for (size_t i = 0; i < count; i++)
        cr_assert(http_client_send(&clients[i], HALF, strlen(HALF)));
    fixture_await_read(fixture, 0);
}

static void end_request(const struct fixture *fixture, struct http_client *client)
{
    char half[256];
    struct http_answer answer;

    snprintf(half, sizeof half, "Authorization: Bearer %s\r\n\r\n", fixture->manager.secret);
    cr_assert(http_client_send(client, half, strlen(half)));
    cr_assert_eq(http_client_read(client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 200);
}

/* LIMIT connections with a request under way are served, further ones are told that there is no room. */
static void check_limit(const struct fixture *fixture)
{
    struct http_client clients[LIMIT + BEYOND];
    struct http_answer answer;

    for (size_t i = 0; i < LIMIT; i++)
        http_client_connect(&clients[i], fixture->nodes[0].port);
    begin_requests(fixture, clients, LIMIT);
    for (size_t i = LIMIT; i < LIMIT + BEYOND; i++) {
        http_client_connect(&clients[i], fixture->nodes[0].port);
        cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        cr_expect_eq(answer.status, 503);
        cr_expect_str_eq(http_answer_code(&answer), "overloaded");
        cr_expect(http_client_ended(&clients[i], PATIENCE_MS));
        http_client_close(&clients[i]);
    }
    for (size_t i = 0; i < LIMIT; i++)
        end_request(fixture, &clients[i]);
    cr_expect_eq(fixture_try_key(fixture, 0, fixture->manager.secret), 200, "who is idle makes room");
    for (size_t i = 0; i < LIMIT; i++)
        http_client_close(&clients[i]);
}

Test(node, connections_beyond_the_limit_are_shed_and_the_others_served)
{
    static const char *const MORE[] = {"--connections-max", "10", "--head-timeout-ms", "600000", NULL};
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    check_limit(&fixture);
    fixture_stop(&fixture);
}

/* On a busy machine a shorter limit than the default could not be told from it; a longer one can. */
Test(node, waits_for_heads_and_bodies_longer_than_by_default_if_told)
{
    enum { DEFAULT_MS = 10000, SPARE_MS = 2000 };
    static const char *const MORE[] = {
        "--head-timeout-ms", "600000", "--body-timeout-ms", "600000", "--body-total-timeout-ms", "600000", NULL};
    static const char BODY[] = "{\"name\":\"slow\",\"mode\":\"test\"}";
    struct http_client head, body;
    struct http_answer answer;
    struct fixture fixture;
    char post[512];

    fixture_start(&fixture, 1, MORE);
    http_client_connect(&head, fixture.nodes[0].port);
    http_client_connect(&body, fixture.nodes[0].port);
    snprintf(post, sizeof post,
             "POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             fixture.manager.secret, strlen(BODY));
    cr_assert(http_client_send(&body, post, strlen(post)));
    begin_requests(&fixture, &head, 1);
    poll(NULL, 0, DEFAULT_MS + SPARE_MS);
    end_request(&fixture, &head);
    cr_assert(http_client_send(&body, BODY, strlen(BODY)));
    cr_assert_eq(http_client_read(&body, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 201, "%s", answer.body);
    http_client_close(&head);
    http_client_close(&body);
    fixture_stop(&fixture);
}

/* What is open beside connections has room for 256 files. */
Test(node, takes_no_more_connections_than_files_may_be_open)
{
    const struct rlimit files = {.rlim_cur = 256 + 2 * LIMIT, .rlim_max = 256 + 2 * LIMIT};
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    fixture_add_node(&fixture, (const char *const[]){"--head-timeout-ms", "600000", NULL});
    check_limit(&fixture);
    cr_expect(file_contains(fixture.nodes[0].process.err_path, "the open-files limit is too low"));
    fixture_stop(&fixture);
}

Test(node, checks_are_counted_by_their_result)
{
    struct fixture fixture;
    struct fixture_key revoked;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &revoked);
    fixture_revoke_key(&fixture, &revoked);
    for (int i = 0; i < 3; i++)
        fixture_try_key(&fixture, 0, fixture.manager.secret);
    fixture_try_key(&fixture, 0, revoked.secret);
    fixture_try_key(&fixture, 0, "garbage");
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_checks_total{result=\"accepted\"}"), 3);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_checks_total{result=\"revoked\"}"), 1);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_checks_total{result=\"invalid\"}"), 1);
    fixture_stop(&fixture);
}

Test(node, a_second_node_on_the_same_address_says_so)
{
    struct fixture fixture;
    char address[32];
    char *out, *err;

    fixture_start(&fixture, 1, NULL);
    snprintf(address, sizeof address, "127.0.0.1:%u", fixture.nodes[0].port);
    const char *args[] = {"serve", "--public-origin",   NODE_ORIGIN,   "--listen",
                          address, "--internal-listen", "127.0.0.1:0", NULL};
    cr_expect_eq(fixture_run(&fixture, args, NULL, &out, &err), 1, "%s", err);
    cr_expect_not_null(strstr(err, address), "%s", err);
    free(out);
    free(err);
    fixture_stop(&fixture);
}

static void demand_password(struct fixture *fixture, const char *password)
{
    redis_server_tell_all(&fixture->redis, "CONFIG", "SET", "requirepass", password, NULL);
    for (struct redis_server *server = &fixture->redis; server; server = server->next)
        server->options.password = password;
}

/* The address by TCP: that of the cluster, if there is one. */
static void url_with_password(struct fixture *fixture, const char *password, char *ret_url, size_t size)
{
    static const char CLUSTER[] = "redis-cluster://";

    if (strncmp(fixture->redis.url, CLUSTER, sizeof CLUSTER - 1) == 0) {
        snprintf(ret_url, size, "%s:%s@%s", CLUSTER, password, fixture->redis.url + sizeof CLUSTER - 1);
    } else {
        redis_server_open_port(&fixture->redis);
        snprintf(ret_url, size, "redis://:%s@127.0.0.1:%u", password, fixture->redis.port);
    }
}

static void expect_node_keeps_secret(struct fixture *fixture, const char *name, const char *url, const char *password)
{
    fixture_start_node(fixture, 0, name, url, NULL);
    cr_expect_eq(fixture_try_key(fixture, 0, fixture->manager.secret), 200);
    cr_expect_not(file_contains(fixture->nodes[0].process.err_path, password), "a password in the log");
    node_stop(&fixture->nodes[0]);
}

Test(node, a_redis_with_a_password_over_tcp)
{
    static const char PASSWORD[] = "open-sesame";
    struct fixture fixture;
    char url[PROCESS_PATH_BYTES + 64];

    fixture_start(&fixture, 0, NULL);
    demand_password(&fixture, PASSWORD);
    url_with_password(&fixture, PASSWORD, url, sizeof url);
    expect_node_keeps_secret(&fixture, "tcp", url, PASSWORD);
    fixture_stop(&fixture);
}

Test(node, a_redis_with_a_password_at_a_socket)
{
    static const char PASSWORD[] = "open-sesame";
    struct fixture fixture;
    char url[PROCESS_PATH_BYTES + 64];

    fixture_use_one_redis("a cluster is not reached by a socket");
    fixture_start(&fixture, 0, NULL);
    demand_password(&fixture, PASSWORD);
    snprintf(url, sizeof url, "unix:%s?password=%s", fixture.redis.socket_path, PASSWORD);
    expect_node_keeps_secret(&fixture, "socket", url, PASSWORD);
    fixture_stop(&fixture);
}
