/* Clients that leave, nodes that are told to stop. Redis is frozen to hold a request at the store for as long as a test
 * wants. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(client_gone, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void send_create(const struct fixture *fixture, struct http_client *client, const char *name)
{
    char json[128];
    struct http_call call = {
        .method = "POST", .target = "/v1/api_keys", .bearer = fixture->manager.secret, .json = json};

    snprintf(json, sizeof json, "{\"name\":\"%s\",\"mode\":\"test\"}", name);
    http_client_connect(client, fixture->nodes[0].port);
    http_client_send_call(client, &call);
}

/* Opens a creation up to the point where only the body is missing: the session has been checked by then, so that Redis
 * can be frozen for the insertion alone. (A key that makes one is read once more before.) */
static void send_create_head(struct fixture *fixture, struct http_client *client)
{
    char head[1024];
    struct http_answer answer;
    struct fixture_session session;

    fixture_add_session(fixture, &fixture->user, true, &session);
    snprintf(head, sizeof head,
             "POST /v1/console/api_keys HTTP/1.1\r\nHost: a\r\nOrigin: " NODE_ORIGIN "\r\n"
             "Cookie: __Host-session=%s\r\nX-CSRF-Token: %s\r\nExpect: 100-continue\r\n"
             "Content-Type: application/json\r\nContent-Length: 29\r\n\r\n",
             session.token, session.csrf);
    http_client_connect(client, fixture->nodes[0].port);
    http_client_send(client, head, strlen(head));
    cr_assert_eq(http_client_read(client, true, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 100, "%s", answer.head);
}

/* How many test keys there are, and how many of them are active. */
static void count_keys(const struct fixture *fixture, int *ret_all, int *ret_active)
{
    struct http_call call = {.target = "/v1/api_keys?mode=test&limit=100", .bearer = fixture->manager.secret};
    struct http_answer answer;

    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
    *ret_all = http_answer_json_count(&answer, "data");
    *ret_active = 0;
    for (const char *at = answer.body; (at = strstr(at, "\"revoked_at\":null")) != NULL; at++)
        (*ret_active)++;
}

static void await_no_active_key(const struct fixture *fixture, int at_least)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int all, active;

    do {
        count_keys(fixture, &all, &active);
        if (all >= at_least && active == 0)
            return;
        poll(NULL, 0, 50);
    } while (deadline_left_ms(deadline) > 0);
    cr_expect_eq(active, 0, "%d of %d keys are active, and nobody has their secret", active, all);
    cr_expect_geq(all, at_least, "%d keys: the test did not reach the store", all);
}

Test(client_gone, a_key_whose_client_left_before_the_store_answered_is_revoked)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "60000", NULL};
    struct http_client client;
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    for (int i = 1; i <= 3; i++) {
        send_create_head(&fixture, &client);
        redis_server_freeze(&fixture.redis);
        http_client_send(&client, "{\"name\":\"gone\",\"mode\":\"test\"}", 29);
        fixture_await_read(&fixture, 0);
        http_client_reset(&client);
        fixture_await_read(&fixture, 0);
        redis_server_thaw(&fixture.redis);
        await_no_active_key(&fixture, i);
    }
    fixture_stop(&fixture);
}

/* Here the client is gone before even its credential has been looked up. */
Test(client_gone, clients_that_left_early_leave_no_key_that_nobody_has)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "60000", NULL};
    struct http_client clients[20];
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    redis_server_freeze(&fixture.redis);
    for (size_t i = 0; i < 20; i++)
        send_create(&fixture, &clients[i], "early");
    fixture_await_read(&fixture, 0);
    for (size_t i = 0; i < 20; i++)
        http_client_reset(&clients[i]);
    fixture_await_read(&fixture, 0);
    redis_server_thaw(&fixture.redis);
    await_no_active_key(&fixture, 0);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

Test(client_gone, a_key_whose_creation_was_not_confirmed_in_time_is_revoked)
{
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    send_create_head(&fixture, &client);
    redis_server_freeze(&fixture.redis);
    http_client_send(&client, "{\"name\":\"late\",\"mode\":\"test\"}", 29);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 503);
    cr_expect_str_eq(http_answer_code(&answer), "store_unavailable");
    cr_expect_null(strstr(answer.body, "svc_sk_"));
    http_client_close(&client);
    redis_server_thaw(&fixture.redis);
    struct deadline back = deadline_in(PATIENCE_MS);
    while (fixture_try_key(&fixture, 0, fixture.manager.secret) != 200 && deadline_left_ms(back) > 0)
        poll(NULL, 0, 50);
    await_no_active_key(&fixture, 1);
    fixture_stop(&fixture);
}

Test(client_gone, a_half_closed_client_still_gets_its_key)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "60000", NULL};
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;
    char secret[FIXTURE_TOKEN_BYTES];

    fixture_start(&fixture, 1, MORE);
    redis_server_freeze(&fixture.redis);
    send_create(&fixture, &client, "half");
    http_client_half_close(&client);
    fixture_await_read(&fixture, 0);
    redis_server_thaw(&fixture.redis);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 201);
    cr_assert(http_answer_json(&answer, "secret", secret, sizeof secret));
    cr_expect(http_client_ended(&client, PATIENCE_MS));
    http_client_close(&client);
    cr_expect_eq(fixture_try_key(&fixture, 0, secret), 200);
    fixture_stop(&fixture);
}

/* It has read its key, over a connection that was used before. */
static void create_and_reset(struct fixture *fixture, int wait_ms)
{
    struct http_client client;
    struct http_answer answer;

    http_client_connect(&client, fixture->nodes[0].port);
    http_client_call(&client, &(struct http_call){.target = "/v1/whoami", .bearer = fixture->manager.secret}, &answer);
    cr_assert_eq(answer.status, 200);
    http_client_send_call(&client, &(struct http_call){.method = "POST",
                                                       .target = "/v1/api_keys",
                                                       .bearer = fixture->manager.secret,
                                                       .json = "{\"name\":\"read\",\"mode\":\"test\"}"});
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 201, "%s", answer.body);
    if (wait_ms)
        poll(NULL, 0, wait_ms);
    http_client_reset(&client);
}

Test(client_gone, a_key_that_was_read_stays_though_the_client_resets_its_connection)
{
    enum { ROUNDS = 40 };
    struct http_call whole = {.method = "POST", .target = "/v1/api_keys", .json = "{\"name\":\"l\",\"mode\":\"test\"}"};
    struct http_answer answer;
    struct fixture fixture;
    int all, active;

    fixture_start(&fixture, 1, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        create_and_reset(&fixture, 0);
        create_and_reset(&fixture, 5);
    }
    /* Made last, and revoked after all that would have been revoked before it. */
    whole.bearer = fixture.manager.secret;
    cr_assert_eq(fixture_call(&fixture, 0, &whole, &answer), 201, "%s", answer.body);
    fixture_await_read(&fixture, 0);
    count_keys(&fixture, &all, &active);
    cr_expect_eq(all, 2 * ROUNDS + 1);
    cr_expect_eq(active, all, "%d of %d keys were revoked, though somebody has their secret", all - active, all);
    fixture_stop(&fixture);
}

static bool answers_a_stranger(uint16_t port)
{
    struct http_client client;
    struct http_answer answer;
    bool answered;

    if (!http_client_try_connect(&client, port))
        return false;
    http_client_send_call(&client, &(struct http_call){.target = "/v1/whoami"});
    answered = http_client_read(&client, false, PATIENCE_MS, &answer) == HTTP_CLIENT_ANSWER && answer.status == 401;
    http_client_close(&client);
    return answered;
}

Test(client_gone, sigterm_lets_what_is_under_way_finish)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "60000", "--drain-ms", "60000", NULL};
    struct http_client busy, idle;
    struct http_answer answer;
    struct fixture fixture;
    char value[32];

    fixture_start(&fixture, 1, MORE);
    http_client_connect(&idle, fixture.nodes[0].port);
    http_client_call(&idle, &(struct http_call){.target = "/v1/whoami", .bearer = fixture.manager.secret}, &answer);
    cr_assert_eq(answer.status, 200);
    redis_server_freeze(&fixture.redis);
    send_create(&fixture, &busy, "drained");
    fixture_await_read(&fixture, 0);
    process_signal(&fixture.nodes[0].process, SIGTERM);
    cr_expect(http_client_ended(&idle, PATIENCE_MS), "an idle connection is closed");
    cr_expect(answers_a_stranger(fixture.nodes[0].port), "others are still answered");
    redis_server_thaw(&fixture.redis);
    cr_assert_eq(http_client_read(&busy, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 201, "%s", answer.body);
    cr_expect(http_answer_field(&answer, "Connection", value, sizeof value) && strcmp(value, "close") == 0);
    cr_expect(http_client_ended(&busy, PATIENCE_MS));
    http_client_close(&busy);
    http_client_close(&idle);
    node_expect_clean_end(&fixture.nodes[0]);
    fixture_stop(&fixture);
}

/* Half of its head had come: the request had not begun. */
Test(client_gone, sigterm_lets_what_has_begun_to_arrive_be_answered)
{
    static const struct {
        const char *head;
        int status;
    } LATE[] = {{"GET /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer x\r\n", 401},
                {"GET /console/ HTTP/1.1\r\nHost: t\r\n", 200}};
    struct http_client late[2];
    struct http_answer answer;
    struct fixture fixture;
    char value[32];

    fixture_start(&fixture, 1, (const char *const[]){"--head-timeout-ms", "600000", "--drain-ms", "60000", NULL});
    for (size_t i = 0; i < 2; i++) {
        http_client_connect(&late[i], fixture.nodes[0].port);
        http_client_send(&late[i], LATE[i].head, strlen(LATE[i].head));
    }
    fixture_await_read(&fixture, 0);
    process_signal(&fixture.nodes[0].process, SIGTERM);
    while (http_call(fixture.nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, &answer) != 503)
        poll(NULL, 0, 5);
    for (size_t i = 0; i < 2; i++) {
        http_client_send(&late[i], "\r\n", 2);
        cr_assert_eq(http_client_read(&late[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        cr_expect_eq(answer.status, LATE[i].status, "%s", answer.body);
        cr_expect(http_answer_field(&answer, "Connection", value, sizeof value) && strcmp(value, "close") == 0);
        cr_expect(http_client_ended(&late[i], PATIENCE_MS));
        http_client_close(&late[i]);
    }
    node_expect_clean_end(&fixture.nodes[0]);
    fixture_stop(&fixture);
}

/* Clients that keep their connections and repeat nothing: people's and integrations' at one listener, a gateway's
 * checks at the other. Whoever is told that his connection closes goes; everybody else is answered again. */
Test(client_gone, sigterm_loses_no_request_of_a_busy_connection)
{
    enum { CLIENTS = 40, ROUNDS = 5 };
    static const char CHECK[] = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /v1/patients/7\r\n";
    static struct http_client clients[CLIENTS];
    unsigned open = CLIENTS;
    struct http_answer answer;
    struct fixture fixture;
    char value[32];

    fixture_start(&fixture, 1, (const char *const[]){"--drain-ms", "60000", NULL});
    const struct http_call whoami = {.target = "/v1/whoami", .bearer = fixture.manager.secret};
    const struct http_call check = {.target = "/check/forward-auth", .bearer = fixture.manager.secret, .fields = CHECK};
    for (size_t i = 0; i < CLIENTS; i++)
        http_client_connect(&clients[i], i % 2 ? fixture.nodes[0].internal_port : fixture.nodes[0].port);
    for (unsigned round = 0; open > 0; round++) {
        if (round == ROUNDS)
            process_signal(&fixture.nodes[0].process, SIGTERM);
        for (size_t i = 0; i < CLIENTS; i++)
            if (clients[i].fd >= 0)
                http_client_send_call(&clients[i], i % 2 ? &check : &whoami);
        for (size_t i = 0; i < CLIENTS; i++) {
            if (clients[i].fd < 0)
                continue;
            cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER,
                         "client %zu, round %u", i, round);
            cr_expect_eq(answer.status, 200, "client %zu, round %u: %s", i, round, answer.body);
            if (!http_answer_field(&answer, "Connection", value, sizeof value) || strcmp(value, "close") != 0)
                continue;
            cr_expect_geq(round, ROUNDS);
            http_client_close(&clients[i]);
            open--;
        }
    }
    node_expect_clean_end(&fixture.nodes[0]);
    fixture_stop(&fixture);
}

Test(client_gone, sigterm_ends_in_time_though_a_client_stalls_and_redis_hangs)
{
    static const char *const MORE[] = {"--drain-ms", "1000", "--redis-timeout-ms", "2000", "--head-timeout-ms",
                                       "600000",     NULL};
    enum { DRAIN_DEFAULT_MS = 30000 };
    struct http_client stalled, waiting;
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    http_client_connect(&stalled, fixture.nodes[0].port);
    http_client_send(&stalled, "GET /v1/whoami HTT", 18);
    redis_server_freeze(&fixture.redis);
    send_create(&fixture, &waiting, "never");
    fixture_await_read(&fixture, 0);
    int64_t began_ms = deadline_now_ms();
    process_signal(&fixture.nodes[0].process, SIGTERM);
    node_expect_clean_end(&fixture.nodes[0]);
    cr_expect_lt(deadline_now_ms() - began_ms, DRAIN_DEFAULT_MS, "as if nothing had been set");
    http_client_close(&stalled);
    http_client_close(&waiting);
    fixture_stop(&fixture);
}

Test(client_gone, many_clients_that_come_and_go)
{
    struct http_client clients[60];
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 60; i++) {
            http_client_connect(&clients[i], fixture.nodes[0].port);
            if (i % 3 != 0)
                http_client_send_call(&clients[i],
                                      &(struct http_call){.target = "/v1/api_keys", .bearer = fixture.manager.secret});
            if (i % 3 == 1)
                http_client_send(&clients[i], "POST /v1/api_keys HTTP/1.1\r\nHost: a\r\nContent-Le", 47);
        }
        for (size_t i = 0; i < 60; i++) {
            if (i % 2)
                http_client_reset(&clients[i]);
            else
                http_client_close(&clients[i]);
        }
    }
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

/* Sends a check of that key, and is gone before the answer. client: connected. */
static void give_up(struct http_client *client, const char *secret)
{
    http_client_send_call(client, &(struct http_call){.target = "/check/auth-request",
                                                      .bearer = secret,
                                                      .fields = "X-Original-Method: GET\r\n"
                                                                "X-Original-URI: /v1/patients\r\n"});
    http_client_close(client);
}

static void await_given_up(const struct fixture *fixture, long checks)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    long refused;

    do {
        refused = fixture_metric(fixture, 0, "chatelaine_refusals_total{code=\"overloaded\"}");
    } while (refused < checks && deadline_left_ms(deadline) > 0);
    cr_expect_eq(refused, checks, "%ld", refused);
}

static const char *const NO_CANARY[] = {"--canary-interval-ms", "0", NULL};
static const char ACCEPTED[] = "chatelaine_checks_total{result=\"accepted\"}";

/* Another node has been asked meanwhile: on connections that were there before, and on those that nobody has accepted.
 */
Test(client_gone, a_node_that_was_paused_counts_no_check_that_was_given_up)
{
    enum { BEFORE = 3, CHECKS = 6 };
    struct http_client clients[CHECKS];
    struct fixture fixture;
    long accepted;

    fixture_start(&fixture, 1, NO_CANARY);
    for (size_t i = 0; i < BEFORE; i++) {
        struct http_answer answer;

        http_client_connect(&clients[i], fixture.nodes[0].internal_port);
        http_client_call(&clients[i], &(struct http_call){.target = "/readyz"}, &answer);
    }
    cr_assert_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    accepted = fixture_metric(&fixture, 0, ACCEPTED);
    process_signal(&fixture.nodes[0].process, SIGSTOP);
    for (size_t i = 0; i < CHECKS; i++) {
        if (i >= BEFORE)
            http_client_connect(&clients[i], fixture.nodes[0].internal_port);
        give_up(&clients[i], fixture.manager.secret);
    }
    process_signal(&fixture.nodes[0].process, SIGCONT);
    await_given_up(&fixture, CHECKS);
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), accepted);
    fixture_stop(&fixture);
}

Test(client_gone, a_check_that_was_given_up_while_redis_hung_is_not_counted)
{
    struct http_client client;
    struct fixture_key key;
    struct fixture fixture;
    long accepted;

    fixture_start(&fixture, 1, NO_CANARY);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &key);
    accepted = fixture_metric(&fixture, 0, ACCEPTED);
    redis_server_freeze(&fixture.redis);
    http_client_connect(&client, fixture.nodes[0].internal_port);
    give_up(&client, key.secret);
    fixture_await_read(&fixture, 0);
    redis_server_thaw(&fixture.redis);
    await_given_up(&fixture, 1);
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), accepted);
    fixture_stop(&fixture);
}
