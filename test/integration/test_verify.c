/* POST /check/verify: a backend without a gateway hears what a gateway would, with the same promise, and is counted and
 * noted the same. */
#include "asking.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(verify, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define ACCEPTED "chatelaine_checks_total{result=\"accepted\"}"

static void expect_valid(const struct http_answer *answer, const char *code)
{
    cr_expect_eq(answer->status, 200, "%s", answer->body);
    cr_expect_str_eq(asking_member(answer, "", "valid"), strcmp(code, "ok") == 0 ? "true" : "false", "%s",
                     answer->body);
    cr_expect_str_eq(asking_member(answer, "", "code"), code, "%s", answer->body);
}

Test(verify, a_backend_hears_what_a_gateway_hears)
{
    struct askings askings;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &askings);
    for (size_t i = 0; i < askings.count; i++) {
        cr_expect_eq(asking_verify(&fixture, 0, &askings.list[i], &answer), 200, "%s", answer.body);
        asking_expect_verdict_of_check(&fixture, &askings.list[i], &answer, "");
    }
    fixture_stop(&fixture);
}

/* Whether the key is good is the question, whoever may read there. */
Test(verify, a_public_path_makes_no_key_good)
{
    char path[512];
    const char *const more[] = {"--policy-file", path, NULL};
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;

    snprintf(path, sizeof path, "%s/test/http/policy.json", getenv("CHATELAINE_SOURCE"));
    fixture_start(&fixture, 1, more);
    askings_make(&fixture, &made);
    asking_verify(&fixture, 0, &(struct asking){.key = made.revoked.secret, .path = "/v1/leaflets"}, &answer);
    expect_valid(&answer, "api_key_revoked");
    asking_verify(&fixture, 0, &(struct asking){.key = made.read.secret, .path = "/v1/leaflets"}, &answer);
    expect_valid(&answer, "ok");
    fixture_stop(&fixture);
}

Test(verify, the_key_alone_its_scopes_and_its_end)
{
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    char json[ASKING_BYTES], target[128];
    struct fixture_session session;

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    struct asking asking = {.key = made.read.secret};
    asking_verify(&fixture, 0, &asking, &answer);
    expect_valid(&answer, "ok");
    cr_expect_str_eq(asking_member(&answer, "", "ends_at"), "null");
    asking.scopes = "[\"patients:read\"]";
    asking_verify(&fixture, 0, &asking, &answer);
    expect_valid(&answer, "ok");
    asking.scopes = "[\"patients:read\",\"patients:write\",\"keys:manage\"]";
    asking_verify(&fixture, 0, &asking, &answer);
    expect_valid(&answer, "insufficient_scope");
    cr_expect_str_eq(asking_member(&answer, "", "required_scopes"), "patients:read patients:write keys:manage");
    asking = (struct asking){.key = made.read.secret, .path = "/v1/patients", .scopes = "[\"usage:read\"]"};
    asking_verify(&fixture, 0, &asking, &answer);
    expect_valid(&answer, "insufficient_scope");
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", made.read.id);
    fixture_add_session(&fixture, NULL, true, &session);
    snprintf(json, sizeof json, "{\"revoke_at\":\"2027-06-01T10:00:00.123Z\"}");
    fixture_call(&fixture, 0,
                 &(struct http_call){
                     .method = "PUT", .target = target, .cookie = session.token, .csrf = session.csrf, .json = json},
                 &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    leases_await(&fixture, 0);
    for (int times = 0; times < 3; times++) { /* read, then from memory */
        asking_verify(&fixture, 0, &(struct asking){.key = made.read.secret}, &answer);
        expect_valid(&answer, "ok");
        cr_expect_str_eq(asking_member(&answer, "", "ends_at"), "2027-06-01T10:00:00.123Z", "%s", answer.body);
    }
    fixture_stop(&fixture);
}

Test(verify, each_valid_answer_is_one_use)
{
    static const struct asking UNCOUNTED[] = {
        {.path = "/v1/nothing"}, {.path = "/other"}, {.path = "/v1/usage", .method = "PUT"}};
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    long before;

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    before = fixture_metric(&fixture, 0, ACCEPTED);
    for (size_t i = 0; i < sizeof UNCOUNTED / sizeof *UNCOUNTED; i++) {
        struct asking asking = UNCOUNTED[i];

        asking.key = made.read.secret;
        asking_verify(&fixture, 0, &asking, &answer);
        cr_expect_str_eq(asking_member(&answer, "", "valid"), "false", "%s", answer.body);
    }
    asking_verify(&fixture, 0, &(struct asking){.key = made.revoked.secret}, &answer);
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before);
    for (int i = 1; i <= 5; i++) {
        asking_verify(&fixture, 0, &(struct asking){.key = made.read.secret}, &answer);
        expect_valid(&answer, "ok");
        cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before + i);
    }
    fixture_stop(&fixture);
}

/* Of a revoked key: an event with the address that was said, and the route. The secret is in no log. */
Test(verify, the_use_of_a_revoked_key_is_an_event)
{
    static const char *const SOON[] = {"--usage-flush-ms", "20", "--access-log-sample", "1", NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_session session;
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    char *log;

    fixture_start(&fixture, 1, SOON);
    askings_make(&fixture, &made);
    fixture_add_session(&fixture, NULL, false, &session);
    asking_verify(&fixture, 0,
                  &(struct asking){.key = made.revoked.secret, .path = "/v1/patients/7", .network = "203.0.113.77"},
                  &answer);
    expect_valid(&answer, "api_key_revoked");
    do {
        fixture_call(&fixture, 0,
                     &(struct http_call){.target = "/v1/console/audit_events?type=api_key.used_after_revocation",
                                         .cookie = session.token},
                     &answer);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
    } while (http_answer_json_count(&answer, "data") != 1);
    cr_expect_str_eq(asking_member(&answer, "data.0.", "ip"), "203.0.113.77", "%s", answer.body);
    cr_expect(strstr(answer.body, "GET /v1/patients"), "%s", answer.body);
    log = node_log(&fixture.nodes[0]);
    cr_expect(strstr(log, "route=/check/verify"), "%s", log);
    cr_expect_not(strstr(log, made.revoked.secret));
    free(log);
    fixture_stop(&fixture);
}

/* What a mistaken caller is told; nothing that was sent is said again if it may be a secret. */
Test(verify, mistakes_are_named)
{
#define KEY "\"key\":\"svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUVwxyzab\""
    static const struct {
        const char *json;
        int status;
        const char *code, *param, *says;
    } CASES[] = {
        {"", 400, "invalid_json", "(none)", "not a valid JSON object"},
        {"[]", 400, "invalid_json", "(none)", "not a valid JSON object"},
        {"{", 400, "invalid_json", "(none)", "not a valid JSON object"},
        {"{" KEY "," KEY "}", 400, "invalid_json", "(none)", "same name"},
        {"{\"key\":\"a\\u0000b\"}", 400, "invalid_json", "(none)", ""},
        {"{\"key\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}", 400, "invalid_json", "(none)", ""},
        {"{}", 400, "parameter_missing", "key", ""},
        {"{\"key\":7}", 400, "parameter_invalid", "key", ""},
        {"{\"key\":null}", 400, "parameter_invalid", "key", ""},
        {"{" KEY ",\"scope\":[\"usage:read\"]}", 400, "parameter_unknown", "scope", "Did you mean scopes?"},
        {"{" KEY ",\"path\":\"patients\"}", 400, "parameter_invalid", "path", "must begin with /"},
        {"{" KEY ",\"path\":\"patients\"}", 400, "parameter_invalid", "path", "not \\\"patients\\\""},
        {"{" KEY ",\"path\":\"\"}", 400, "parameter_invalid", "path", "must begin with /"},
        {"{" KEY ",\"path\":7}", 400, "parameter_invalid", "path", ""},
        {"{" KEY ",\"method\":\"get\"}", 400, "parameter_invalid", "method", "not \\\"get\\\""},
        {"{" KEY ",\"method\":\"\"}", 400, "parameter_invalid", "method", ""},
        {"{" KEY ",\"scopes\":[]}", 400, "parameter_invalid", "scopes", "at least one"},
        {"{" KEY ",\"scopes\":\"usage:read\"}", 400, "parameter_invalid", "scopes", ""},
        {"{" KEY ",\"scopes\":[\"usage:reed\"]}", 400, "parameter_invalid", "scopes", "Did you mean usage:read?"},
        {"{" KEY ",\"network\":\"10.0.0.0/8\"}", 400, "parameter_invalid", "network", "not \\\"10.0.0.0/8\\\""},
        {"{" KEY ",\"network\":\"\"}", 400, "parameter_invalid", "network", ""},
        {"{" KEY ",\"path\":\"svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUVwxyzab\"}", 400, "parameter_invalid", "path",
         "must begin with /, as in /v1/patients/42.\""},
    };
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(asking_post(&fixture, 0, "/check/verify", CASES[i].json, &answer), CASES[i].status, "%s: %s",
                     CASES[i].json, answer.body);
        cr_expect_str_eq(http_answer_code(&answer), CASES[i].code, "%s: %s", CASES[i].json, answer.body);
        cr_expect_str_eq(asking_member(&answer, "error.", "param"), CASES[i].param, "%s: %s", CASES[i].json,
                         answer.body);
        cr_expect(strstr(answer.body, CASES[i].says), "%s: %s", CASES[i].json, answer.body);
        cr_expect_not(strstr(answer.body, "svc_sk_"), "%s", answer.body);
    }
    fixture_stop(&fixture);
}

static void expect_status(const struct fixture *fixture, const struct http_call *call, int status, const char *code)
{
    struct http_answer answer;

    http_call(fixture->nodes[0].internal_port, call, &answer);
    cr_expect_eq(answer.status, status, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), code, "%s", answer.body);
}

Test(verify, only_by_post_with_json_of_some_size_and_not_for_strangers)
{
    struct http_answer answer;
    struct fixture fixture;
    char *large = malloc(80 * 1024);

    fixture_start(&fixture, 1, NULL);
    snprintf(large, 80 * 1024, "{\"key\":\"%070000d\"}", 0);
    expect_status(&fixture, &(struct http_call){.target = "/check/verify"}, 405, "method_not_allowed");
    expect_status(&fixture, &(struct http_call){.method = "PUT", .target = "/check/verify", .json = "{}"}, 405,
                  "method_not_allowed");
    expect_status(&fixture, &(struct http_call){.method = "POST", .target = "/check/verify"}, 400, "invalid_json");
    expect_status(&fixture, &(struct http_call){.method = "POST", .target = "/check/verify", .form = "key=x"}, 415,
                  "unsupported_media_type");
    expect_status(&fixture, &(struct http_call){.method = "POST", .target = "/check/verify", .json = large}, 413,
                  "body_too_large");
    expect_status(&fixture, &(struct http_call){.method = "POST", .target = "/check/verify?a=b", .json = "{}"}, 400,
                  "parameter_unknown");
    expect_status(
        &fixture,
        &(struct http_call){.method = "POST", .target = "/check/verify", .json = "{}", .origin = "https://evil.test"},
        400, "bad_request");
    cr_expect_eq(fixture_call(&fixture, 0,
                              &(struct http_call){.method = "POST", .target = "/check/verify", .json = "{}"}, &answer),
                 404, "%s", answer.body);
    free(large);
    fixture_stop(&fixture);
}

/* A connection carries many of them, also after a refusal, and over the check socket too. */
Test(verify, on_one_connection_over_the_socket)
{
    char path[256], json[ASKING_BYTES];
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.90s/check.sock", fixture.folder);
    fixture_add_node(&fixture, (const char *const[]){"--check-socket", path, NULL});
    http_client_connect_socket(&client, path);
    asking_print(&(struct asking){.key = fixture.manager.secret, .path = "/v1/patients"}, json);
    for (int i = 0; i < 6; i++) {
        http_client_call(
            &client, &(struct http_call){.method = "POST", .target = "/check/verify", .json = i % 3 == 1 ? "{}" : json},
            &answer);
        cr_expect_eq(answer.status, i % 3 == 1 ? 400 : 200, "%s", answer.body);
        cr_expect_str_eq(asking_member(&answer, "", "valid"), i % 3 == 1 ? "(none)" : "true", "%s", answer.body);
    }
    http_client_close(&client);
    fixture_stop(&fixture);
}

/* From memory while the lease lasts; then nobody knows, and nothing is guessed. */
Test(verify, is_503_where_the_store_is_away)
{
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;

    fixture_use_one_redis("it is killed");
    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    leases_await(&fixture, 0);
    asking_verify(&fixture, 0, &(struct asking){.key = made.read.secret}, &answer);
    expect_valid(&answer, "ok");
    redis_server_kill(&fixture.redis);
    leases_await_end(&fixture, 0);
    asking_verify(&fixture, 0, &(struct asking){.key = made.read.secret}, &answer);
    cr_expect_eq(answer.status, 503, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "store_unavailable");
    cr_expect_str_eq(asking_member(&answer, "", "valid"), "(none)");
    asking_verify(&fixture, 0, &(struct asking){.key = "garbage"}, &answer);
    expect_valid(&answer, "invalid_api_key");
    redis_server_restart(&fixture.redis);
    fixture_stop(&fixture);
}

static char body[ASKING_BYTES];

static void prepare(const char *secret, const char *other UNUSED, struct http_call *call)
{
    asking_print(&(struct asking){.key = secret, .path = "/v1/patients"}, body);
    call->json = body;
}

static size_t count_good(const struct http_answer *answer)
{
    const char *code = asking_member(answer, "", "code");

    cr_assert(strcmp(code, "ok") == 0 || strcmp(code, "api_key_revoked") == 0, "%s", answer->body);
    return strcmp(code, "ok") == 0;
}

Test(verify, none_is_accepted_once_the_revocation_is_answered)
{
    asking_race(&(struct asking_race){"/check/verify", prepare, count_good});
}
