/* The access log, and traces in log lines and checks. */
#include "base/clock.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(access_log, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define TRACEPARENT "00-" TRACE "-" SPAN "-01"

static const char *const EACH[] = {"--access-log-sample", "1", NULL};

/* How many lines have all three texts. */
static int count_lines(const struct fixture *fixture, const char *a, const char *b, const char *c)
{
    char *log = node_log(&fixture->nodes[0]), *rest = log, *line;
    int count = 0;

    while ((line = strsep(&rest, "\n")) != NULL)
        count += strstr(line, a) && strstr(line, b) && strstr(line, c);
    free(log);
    return count;
}

static int count_requests(const struct fixture *fixture, const char *a, const char *b)
{
    return count_lines(fixture, " message=request ", a, b);
}

static int check(const struct fixture *fixture, const char *secret, const char *fields, struct http_answer *ret_answer)
{
    char all[512];

    snprintf(all, sizeof all, "X-Original-Method: GET\r\nX-Original-URI: /v1/patients/s3cret?name=s3cret\r\n%s",
             fields);
    return http_call(fixture->nodes[0].internal_port,
                     &(struct http_call){.target = "/check/auth-request", .bearer = secret, .fields = all}, ret_answer);
}

Test(access_log, each_request_has_a_line_and_no_secret)
{
    struct http_answer answer;
    struct fixture_session session;
    struct fixture_key revoked;
    struct fixture fixture;
    char field[128];

    fixture_start(&fixture, 1, EACH);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &revoked);
    fixture_revoke_key(&fixture, &revoked);
    fixture_add_session(&fixture, NULL, true, &session);

    cr_expect_eq(check(&fixture, fixture.manager.secret, "X-Request-Id: mine-1\r\n", &answer), 200);
    cr_expect_eq(count_requests(&fixture,
                                " listener=internal asked_by=gateway method=GET route=/v1/patients status=200 ",
                                fixture.manager.id),
                 1);
    cr_expect_eq(count_requests(&fixture, " client_request_id=mine-1 ", fixture.account), 1);
    cr_expect_eq(check(&fixture, revoked.secret, "", &answer), 401);
    cr_expect_eq(count_requests(&fixture, " status=401 ", revoked.id), 1);
    cr_expect_eq(fixture_try_key(&fixture, 0, "s3cret"), 401);
    cr_expect_eq(
        count_requests(&fixture, " listener=public asked_by=client method=GET route=/v1/whoami status=401 ", ""), 1);
    struct http_call call = {.target = "/v1/console/session?x=s3cret", .cookie = session.token};
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 400);
    cr_expect_eq(count_requests(&fixture, " route=/v1/console/session status=400 ", fixture.user.id), 1);
    call = (struct http_call){.target = "/v1/s3cret/%zz"};
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 400);
    call = (struct http_call){.target = "/v1/..%2fs3cret", .bearer = fixture.manager.secret};
    fixture_call(&fixture, 0, &call, &answer);
    call = (struct http_call){.target = "/s3cret"};
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 404);
    cr_expect_eq(count_requests(&fixture, " route=\"\" status=404 ", ""), 1);
    call = (struct http_call){.target = "/console/s3cret"};
    fixture_call(&fixture, 0, &call, &answer);
    cr_expect_eq(count_requests(&fixture, " route=/console ", ""), 1);
    cr_expect_eq(http_call(fixture.nodes[0].internal_port, &(struct http_call){.target = "/livez"}, &answer), 200);
    cr_expect_eq(count_requests(&fixture, " listener=internal asked_by=client method=GET route=/livez status=200 ", ""),
                 1);

    snprintf(field, sizeof field, "X-Request-Id: %s\r\n", fixture.manager.secret);
    cr_expect_eq(check(&fixture, fixture.manager.secret, field, &answer), 200);
    call = (struct http_call){.target = "/v1/whoami", .bearer = fixture.manager.secret, .fields = field};
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 400);
    call.target = "/v1/patients";
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 404);

    cr_expect_eq(count_lines(&fixture, "s3cret", "", ""), 0);
    cr_expect_eq(count_lines(&fixture, fixture.manager.secret, "", ""), 0);
    cr_expect_eq(count_lines(&fixture, session.token, "", ""), 0);
    cr_expect_eq(count_lines(&fixture, "client_request_id=\"\"", "", ""), 0);
    fixture_stop(&fixture);
}

/* The draw is between 1 and 2 N - 1 requests, so this holds whatever comes up. */
Test(access_log, a_sample_is_logged)
{
    enum { SAMPLE = 10, REQUESTS = 400 };
    static const char *const MORE[] = {"--access-log-sample", "10", NULL};
    struct http_answer answer;
    struct fixture fixture;
    struct http_client client;
    int count;

    fixture_start(&fixture, 1, MORE);
    http_client_connect(&client, fixture.nodes[0].port);
    for (int i = 0; i < REQUESTS; i++)
        http_client_call(&client, &(struct http_call){.target = "/v1/whoami", .bearer = fixture.manager.secret},
                         &answer);
    http_client_close(&client);
    count = count_requests(&fixture, "", "");
    cr_expect_geq(count, REQUESTS / (2 * SAMPLE - 1));
    cr_expect_leq(count, REQUESTS / 2, "%d", count);
    fixture_stop(&fixture);
}

Test(access_log, is_off_unless_asked_for)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    cr_expect_eq(fixture_try_key(&fixture, 0, "garbage"), 401);
    cr_expect_eq(count_requests(&fixture, "", ""), 0);
    cr_expect_eq(count_lines(&fixture, "request refused", "invalid_api_key", ""), 1, "refusals always");
    fixture_stop(&fixture);
}

static void expect_trace(const struct fixture *fixture, const char *fields, const char *wanted)
{
    struct http_answer answer;
    char value[128] = "";

    cr_expect_eq(check(fixture, fixture->manager.secret, fields, &answer), 200);
    cr_expect_eq(http_answer_field(&answer, "traceparent", value, sizeof value), wanted[0] != '\0', "%s", fields);
    cr_expect_str_eq(value, wanted, "%s", fields);
}

Test(access_log, a_trace_is_logged_and_passed_on)
{
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, EACH);
    expect_trace(&fixture, "traceparent: " TRACEPARENT "\r\n", TRACEPARENT);
    cr_expect_eq(count_requests(&fixture, " trace_id=" TRACE " span_id=" SPAN " ", " status=200 "), 1);
    expect_trace(&fixture, "TraceParent: cc-" TRACE "-" SPAN "-00-x\r\n", "00-" TRACE "-" SPAN "-00");
    expect_trace(&fixture, "", "");
    expect_trace(&fixture, "traceparent: 00-" TRACE "-" SPAN "\r\n", "");
    expect_trace(&fixture, "traceparent: s3cret\r\n", "");
    expect_trace(&fixture, "traceparent: " TRACEPARENT "\r\ntraceparent: " TRACEPARENT "\r\n", "");
    cr_expect_eq(count_requests(&fixture, " trace_id=" TRACE, ""), 2);
    cr_expect_eq(count_requests(&fixture, "trace_id=\"\"", ""), 0);
    cr_expect_eq(count_lines(&fixture, "s3cret", "", ""), 0);

    cr_expect_eq(check(&fixture, "garbage", "traceparent: " TRACEPARENT "\r\n", &answer), 401);
    cr_expect_eq(count_lines(&fixture, "request refused", " trace_id=" TRACE " ", "invalid_api_key"), 1);
    fixture_stop(&fixture);
}

/* Neither the line nor the metric tells a right password from a wrong one. */
Test(access_log, refused_logins_have_a_reason_class)
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
    cr_expect_eq(count_lines(&fixture, "login refused", " reason=password_or_code ", user.id), 2);
    cr_expect_eq(count_lines(&fixture, "login refused", " reason=unknown_email ", " target=\"\""), 1);
    cr_expect_eq(count_lines(&fixture, "wrong-Password", "", ""), 0);
    fixture_stop(&fixture);
}

/* When it will be is no reason. */
Test(access_log, a_scheduled_revocation_says_when)
{
    struct http_answer answer;
    char target[128], at[CLOCK_RFC3339_BYTES], json[64];
    struct fixture_session session;
    struct fixture_key key;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_add_session(&fixture, NULL, true, &session);
    clock_print_rfc3339(clock_wall_ms() + 24 * 60 * 60 * 1000, at);
    snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key.id);
    struct http_call call = {
        .method = "PUT", .target = target, .cookie = session.token, .csrf = session.csrf, .json = json};
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    call = (struct http_call){.method = "DELETE", .target = target, .cookie = session.token, .csrf = session.csrf};
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    cr_expect_eq(count_lines(&fixture, " message=\"revocation scheduled\" revoke_at=", at, key.id), 1);
    cr_expect_eq(count_lines(&fixture, " message=\"scheduled revocation withdrawn\" request_id=", "", key.id), 1);
    fixture_stop(&fixture);
}
