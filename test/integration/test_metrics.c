/* Each metric moves for its cause. */
#include "fixture.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(metrics, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static long metric(const struct fixture *fixture, const char *series)
{
    return fixture_metric(fixture, 0, series);
}

static void expect_check(const struct fixture *fixture, const char *result, long count)
{
    char series[160];

    snprintf(series, sizeof series, "chatelaine_checks_total{result=\"%s\"}", result);
    cr_expect_eq(metric(fixture, series), count, "%s", series);
    snprintf(series, sizeof series, "chatelaine_check_duration_seconds_count{result=\"%s\"}", result);
    cr_expect_eq(metric(fixture, series), count, "%s", series);
    snprintf(series, sizeof series, "chatelaine_check_duration_seconds_bucket{result=\"%s\",le=\"+Inf\"}", result);
    cr_expect_eq(metric(fixture, series), count, "%s", series);
}

static void expect_refusals(const struct fixture *fixture, const char *code, long count)
{
    char series[160];

    snprintf(series, sizeof series, "chatelaine_refusals_total{code=\"%s\"}", code);
    cr_expect_eq(metric(fixture, series), count, "%s", series);
}

static int check(const struct fixture *fixture, const char *target, const char *secret)
{
    struct http_answer answer;
    struct http_call call = {.target = "/check/auth-request",
                             .bearer = secret,
                             .fields = "X-Original-Method: GET\r\nX-Original-URI: /v1/patients\r\n"};

    if (target)
        call.target = target;
    return http_call(fixture->nodes[0].internal_port, &call, &answer);
}

Test(metrics, checks_and_refusals_count_by_result)
{
    struct fixture fixture;
    struct fixture_key revoked, narrow;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &revoked);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_AUDIT_READ, &narrow);
    fixture_revoke_key(&fixture, &revoked);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(check(&fixture, NULL, fixture.manager.secret), 200);
    cr_expect_eq(check(&fixture, NULL, revoked.secret), 401);
    cr_expect_eq(check(&fixture, NULL, narrow.secret), 403);
    cr_expect_eq(fixture_try_key(&fixture, 0, "garbage"), 401);
    cr_expect_eq(check(&fixture, "/check/nothing", NULL), 404);
    expect_check(&fixture, "accepted", 3);
    expect_check(&fixture, "revoked", 1);
    expect_check(&fixture, "forbidden", 1);
    expect_check(&fixture, "invalid", 1);
    expect_check(&fixture, "unavailable", 0);
    expect_refusals(&fixture, "api_key_revoked", 1);
    expect_refusals(&fixture, "insufficient_scope", 1);
    expect_refusals(&fixture, "invalid_api_key", 1);
    expect_refusals(&fixture, "not_found", 1);
    expect_refusals(&fixture, "invalid_login", 0);

    cr_expect_eq(metric(&fixture, "chatelaine_ready"), 1);
    redis_server_kill(&fixture.redis);
    while (check(&fixture, NULL, fixture.manager.secret) != 503)
        continue;
    cr_expect_eq(metric(&fixture, "chatelaine_ready"), 0);
    cr_expect_geq(metric(&fixture, "chatelaine_check_duration_seconds_count{result=\"unavailable\"}"), 1);
    fixture_stop(&fixture);
}

/* The log says what a lost lease means: something else with Sentinel (test_sentinel.c) and in a cluster. */
Test(metrics, a_lost_lease_is_counted_and_explained)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture fixture;
    long lost;

    fixture_start(&fixture, 1, NULL);
    leases_await(&fixture, 0);
    lost = metric(&fixture, "chatelaine_leases_lost_total");
    redis_server_freeze(&fixture.redis);
    while (metric(&fixture, "chatelaine_lease_held") != 0 && deadline_left_ms(deadline) > 0)
        continue;
    cr_expect_gt(metric(&fixture, "chatelaine_leases_lost_total"), lost);
    cr_expect(file_contains(fixture.nodes[0].process.err_path,
                            leases_are_required() ? "lease lost: checks are answered 503 until"
                                                  : "lease lost: checks read Redis until the next one"));
    redis_server_thaw(&fixture.redis);
    fixture_stop(&fixture);
}

Test(metrics, redis_and_barriers_and_the_loop_are_measured)
{
    struct fixture fixture;
    struct fixture_key key;
    char target[64];
    struct http_call revoke = {.method = "DELETE", .target = target};
    struct http_answer answer;
    long changes;

    /* The canary's revocations have barriers, too. */
    fixture_start(&fixture, 1, (const char *const[]){"--canary-interval-ms", "0", NULL});
    revoke.bearer = fixture.manager.secret;
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    cr_expect_geq(metric(&fixture, "chatelaine_redis_duration_seconds_count{link=\"reads\"}"), 1);
    changes = metric(&fixture, "chatelaine_redis_duration_seconds_count{link=\"changes\"}");
    cr_expect_geq(changes, 1, "heartbeats");
    cr_expect_eq(metric(&fixture, "chatelaine_redis_duration_seconds_count{link=\"sentinel\"}"), 0);
    cr_expect_eq(metric(&fixture, "chatelaine_barrier_duration_seconds_count"), 0);

    fixture_create_key(&fixture, 0, "{\"name\":\"short\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    cr_expect_eq(fixture_call(&fixture, 0, &revoke, &answer), 200, "%s", answer.body);
    cr_expect_eq(metric(&fixture, "chatelaine_barrier_duration_seconds_count"), 1);
    cr_expect_gt(metric(&fixture, "chatelaine_redis_duration_seconds_count{link=\"changes\"}"), changes);
    cr_expect_geq(metric(&fixture, "chatelaine_loop_lag_seconds_count"), 1);
    fixture_stop(&fixture);
}

Test(metrics, connections_count_by_listener)
{
    struct fixture fixture;
    long accepted;

    fixture_start(&fixture, 1, NULL);
    accepted = metric(&fixture, "chatelaine_connections_total{listener=\"public\"}");
    fixture_try_key(&fixture, 0, fixture.manager.secret);
    cr_expect_eq(metric(&fixture, "chatelaine_connections_total{listener=\"public\"}"), accepted + 1);
    cr_expect_eq(metric(&fixture, "chatelaine_connections{listener=\"internal\"}"), 1, "the one that asks");
    cr_expect_geq(metric(&fixture, "chatelaine_connections_total{listener=\"internal\"}"), 3);
    fixture_stop(&fixture);
}

/* A password that was right is not told from a wrong one: whoever reads metrics must not learn that a guess was. */
Test(metrics, logins_count_by_result)
{
    struct fixture_user user, nobody;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    nobody = user;
    snprintf(nobody.email, sizeof nobody.email, "stranger@elsewhere.test");
    cr_expect_eq(fixture_login(&fixture, 0, &user, "wrong-Password-42", NULL, NULL, &answer), 401);
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, "000000", NULL, &answer), 401);
    cr_expect_eq(fixture_login(&fixture, 0, &nobody, FIXTURE_PASSWORD, NULL, NULL, &answer), 401);
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 200);
    cr_expect_eq(metric(&fixture, "chatelaine_logins_total{result=\"ok\"}"), 1);
    cr_expect_eq(metric(&fixture, "chatelaine_logins_total{result=\"refused\"}"), 3);
    cr_expect_eq(metric(&fixture, "chatelaine_logins_total{result=\"locked\"}"), 0);
    cr_expect_eq(metric(&fixture, "chatelaine_password_hash_duration_seconds_count"), 4);
    cr_expect_eq(metric(&fixture, "chatelaine_password_queue_duration_seconds_count"), 4);

    redis_server_kill(&fixture.redis);
    while (fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, "000000", NULL, &answer) != 503)
        continue;
    cr_expect_geq(metric(&fixture, "chatelaine_logins_total{result=\"unavailable\"}"), 1);
    fixture_stop(&fixture);
}

static int ask(const struct fixture *fixture, const char *target, const char *host, const char *fields)
{
    struct http_client client;
    struct http_answer answer;
    char request[512];
    int len = snprintf(request, sizeof request, "HEAD %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, host, fields);

    http_client_connect(&client, fixture->nodes[0].internal_port);
    cr_assert(http_client_send(&client, request, (size_t)len));
    cr_assert_eq(http_client_read(&client, true, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    http_client_close(&client);
    return answer.status;
}

/* Its page could have had its own name lead here. Gateways pass their clients' headers on when they ask for a check. */
Test(metrics, no_page_in_a_browser_reads_them)
{
    static const char *const GUARDED[] = {"/metrics", "/check/watch"};
    static const char ORIGIN[] = "Origin: https://evil.example\r\n";
    struct fixture fixture;

    fixture_start(&fixture, 1, (const char *const[]){"--internal-hosts", "a.clinic.example,b.clinic.example", NULL});
    for (size_t i = 0; i < sizeof GUARDED / sizeof *GUARDED; i++) {
        cr_expect_eq(ask(&fixture, GUARDED[i], "127.0.0.1:8081", ""), 200);
        cr_expect_eq(ask(&fixture, GUARDED[i], "127.0.0.1:8081", "Sec-Fetch-Site: none\r\n"), 200, "typed");
        cr_expect_eq(ask(&fixture, GUARDED[i], "node1:8081", ""), 200);
        cr_expect_eq(ask(&fixture, GUARDED[i], "b.clinic.example:8081", ""), 200);
        cr_expect_eq(ask(&fixture, GUARDED[i], "evil.example:8081", ""), 400);
        cr_expect_eq(ask(&fixture, GUARDED[i], "127.0.0.1:8081", ORIGIN), 400);
        cr_expect_eq(ask(&fixture, GUARDED[i], "127.0.0.1:8081", "Sec-Fetch-Site: same-origin\r\n"), 400);
    }
    cr_expect_eq(ask(&fixture, "/readyz", "api.clinic.example", ""), 200, "probes");
    cr_expect_eq(ask(&fixture, "/check/ext-authz/v1/whoami", "api.clinic.example", ORIGIN), 401, "a gateway's client");
    fixture_stop(&fixture);
}
