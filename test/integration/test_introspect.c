/* POST /check/introspect (RFC 7662): what a server of resources hears that knows the standard and nothing of us. */
#include "asking.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/receipt.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(introspect, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { FORM_BYTES = 256, TARGET_BYTES = 128 };
#define ACCEPTED "chatelaine_checks_total{result=\"accepted\"}"
#define REVOKED "chatelaine_refusals_total{code=\"api_key_revoked\"}"
#define SIGNED "Accept: application/token-introspection+jwt\r\n"
#define ENDS "2027-06-01T10:00:00.999Z"
#define ENDS_S "1811844000"

static int post(const struct fixture *fixture, size_t node, const char *form, const char *fields,
                struct http_answer *ret_answer)
{
    return http_call(
        fixture->nodes[node].internal_port,
        &(struct http_call){.method = "POST", .target = "/check/introspect", .form = form, .fields = fields},
        ret_answer);
}

static int introspect(const struct fixture *fixture, size_t node, const char *secret, const char *fields,
                      struct http_answer *ret_answer)
{
    char form[FORM_BYTES];

    snprintf(form, sizeof form, "token=%s&token_type_hint=access_token&client_id=records&unknown=x", secret);
    return post(fixture, node, form, fields, ret_answer);
}

static void expect_inactive(const struct http_answer *answer)
{
    cr_expect_eq(answer->status, 200, "%s", answer->body);
    cr_expect_str_eq(answer->body, "{\"active\":false}");
}

static void expect_active(const struct fixture_key *key, const char *account, const char *scope, const char *mode,
                          const char *kind, const struct http_answer *answer)
{
    char exp[32];
    long long iat = strtoll(asking_member(answer, "", "iat"), NULL, 10);

    cr_expect_eq(answer->status, 200, "%s", answer->body);
    cr_expect_str_eq(asking_member(answer, "", "active"), "true", "%s", answer->body);
    cr_expect_str_eq(asking_member(answer, "", "scope"), scope);
    cr_expect_str_eq(asking_member(answer, "", "client_id"), key->id);
    cr_expect_str_eq(asking_member(answer, "", "sub"), account);
    cr_expect_str_eq(asking_member(answer, "", "token_type"), "Bearer");
    cr_expect_str_eq(asking_member(answer, "", "iss"), NODE_ORIGIN);
    cr_expect_str_eq(asking_member(answer, "", "mode"), mode);
    cr_expect_str_eq(asking_member(answer, "", "kind"), kind);
    cr_expect(iat > clock_wall_ms() / 1000 - TEST_WITHIN_S && iat <= clock_wall_ms() / 1000, "%lld", iat);
    cr_expect_not(http_answer_json(answer, "exp", exp, sizeof exp));
    cr_expect(strstr(answer->head, "Cache-Control: no-store\r\n"), "%s", answer->head);
    cr_expect(strstr(answer->head, "Content-Type: application/json\r\n"), "%s", answer->head);
}

Test(introspect, a_good_key_is_described_and_of_others_nothing_is_said)
{
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    long before;

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    before = fixture_metric(&fixture, 0, ACCEPTED);
    introspect(&fixture, 0, made.read.secret, "", &answer);
    expect_active(&made.read, fixture.account, "patients:read", "live", "api_key", &answer);
    introspect(&fixture, 0, made.device.secret, "Authorization: Basic cmVjb3Jkczp4\r\n", &answer);
    expect_active(&made.device, fixture.account, "documents:write", "live", "device_key", &answer);
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before + 2);
    const char *const others[] = {made.revoked.secret, made.revoked_device.secret, made.suspended.secret, "garbage",
                                  "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUVwxyzab"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        introspect(&fixture, 0, others[i], "", &answer);
        expect_inactive(&answer);
    }
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before + 2);
    cr_expect_eq(fixture_metric(&fixture, 0, REVOKED), 1);
    introspect(&fixture, 0, made.revoked.secret, SIGNED, &answer);
    cr_expect_eq(fixture_metric(&fixture, 0, REVOKED), 2);
    fixture_stop(&fixture);
}

Test(introspect, a_scheduled_end_is_exp)
{
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    char target[TARGET_BYTES];

    fixture_start(&fixture, 1, NULL);
    fixture_add_session(&fixture, NULL, true, &session);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", fixture.manager.id);
    fixture_call(&fixture, 0,
                 &(struct http_call){.method = "PUT",
                                     .target = target,
                                     .cookie = session.token,
                                     .csrf = session.csrf,
                                     .json = "{\"revoke_at\":\"" ENDS "\"}"},
                 &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    for (int times = 0; times < 2; times++) {
        introspect(&fixture, 0, fixture.manager.secret, "", &answer);
        cr_expect_str_eq(asking_member(&answer, "", "exp"), ENDS_S, "%s", answer.body);
    }
    fixture_stop(&fixture);
}

/* The claims of a signed answer, verified by the keys that the same listener publishes; the caller frees them. */
static struct json *read_signed(const struct fixture *fixture, const struct http_answer *answer)
{
    struct http_answer published;
    struct receipt_keys keys;
    const char *why = NULL;
    struct json *claims;

    cr_assert_eq(answer->status, 200, "%s", answer->body);
    cr_expect(strstr(answer->head, "Content-Type: application/token-introspection+jwt\r\n"), "%s", answer->head);
    cr_expect(strstr(answer->head, "Cache-Control: no-store\r\n"), "%s", answer->head);
    fixture_call(fixture, 0, &(struct http_call){.target = "/.well-known/jwks.json"}, &published);
    cr_assert(receipt_keys_read(text_of(published.body), &keys, &why), "%s", why);
    claims = receipt_verify_claims(text_of(answer->body), TEXT("token-introspection+jwt"), 8192, &keys, &why);
    cr_assert(claims, "%s", why);
    return claims;
}

static bool is_text(const struct json *object, const char *name, const char *wanted)
{
    const struct json *member = json_member(object, name);

    return member && json_type(member) == JSON_STRING && text_equal(json_text(member), text_of(wanted));
}

Test(introspect, a_signed_answer_proves_what_was_said)
{
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    struct json *claims;

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    introspect(&fixture, 0, made.read.secret, SIGNED, &answer);
    claims = read_signed(&fixture, &answer);
    cr_expect(is_text(claims, "iss", NODE_ORIGIN) && is_text(claims, "aud", "records"));
    cr_expect(is_text(json_member(claims, "token_introspection"), "client_id", made.read.id));
    cr_expect(json_bool(json_member(json_member(claims, "token_introspection"), "active")));
    cr_expect_null(json_member(claims, "sub"));
    json_free(claims);
    introspect(&fixture, 0, made.revoked.secret, SIGNED, &answer);
    claims = read_signed(&fixture, &answer);
    cr_expect_not(json_bool(json_member(json_member(claims, "token_introspection"), "active")));
    cr_expect_null(json_member(json_member(claims, "token_introspection"), "client_id"));
    json_free(claims);
    introspect(&fixture, 0, made.read.secret, "Accept: application/json, application/*;q=0.5\r\n", &answer);
    expect_active(&made.read, fixture.account, "patients:read", "live", "api_key", &answer);
    fixture_stop(&fixture);
}

Test(introspect, mistakes_have_the_form_of_oauth)
{
    static const struct {
        const char *form;
        int status;
    } CASES[] = {
        {"", 400},          {"token=", 400},  {"token_type_hint=access_token", 400}, {"token=a&token=b", 400},
        {"token=%00", 400}, {"token=a", 200},
    };
    struct http_answer answer;
    struct fixture fixture;
    char long_client[400];

    fixture_start(&fixture, 1, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(post(&fixture, 0, CASES[i].form, "", &answer), CASES[i].status, "%s: %s", CASES[i].form,
                     answer.body);
        if (CASES[i].status == 400)
            cr_expect_str_eq(asking_member(&answer, "", "error"), "invalid_request", "%s: %s", CASES[i].form,
                             answer.body);
    }
    snprintf(long_client, sizeof long_client, "token=a&client_id=%0256d", 0);
    cr_expect_eq(post(&fixture, 0, long_client, "", &answer), 400, "%s", answer.body);
    snprintf(long_client, sizeof long_client, "token=a&client_id=%s", fixture.manager.secret);
    cr_expect_eq(post(&fixture, 0, long_client, "", &answer), 400, "%s", answer.body);
    cr_expect_not(strstr(answer.body, fixture.manager.secret));
    asking_post(&fixture, 0, "/check/introspect", "{\"token\":\"a\"}", &answer);
    cr_expect_eq(answer.status, 415, "%s", answer.body);
    cr_expect_str_eq(asking_member(&answer, "", "error"), "invalid_request", "%s", answer.body);
    http_call(fixture.nodes[0].internal_port, &(struct http_call){.target = "/check/introspect"}, &answer);
    cr_expect_eq(answer.status, 405, "%s", answer.body);
    fixture_call(&fixture, 0, &(struct http_call){.method = "POST", .target = "/check/introspect", .form = "token=a"},
                 &answer);
    cr_expect_eq(answer.status, 404, "%s", answer.body);
    fixture_stop(&fixture);
}

Test(introspect, is_503_where_the_store_is_away)
{
    struct http_answer answer;
    struct fixture fixture;

    asking_start_without_store(&fixture);
    cr_expect_eq(introspect(&fixture, 0, fixture.manager.secret, SIGNED, &answer), 503, "%s", answer.body);
    cr_expect_str_eq(asking_member(&answer, "", "error"), "temporarily_unavailable", "%s", answer.body);
    cr_expect_str_eq(asking_member(&answer, "", "active"), "(none)", "%s", answer.body);
    redis_server_restart(&fixture.redis);
    fixture_stop(&fixture);
}

static char form[FORM_BYTES];

static void prepare(const char *secret, const char *other UNUSED, struct http_call *call)
{
    snprintf(form, sizeof form, "token=%s", secret);
    call->form = form;
}

static size_t count_good(const struct http_answer *answer)
{
    return strcmp(asking_member(answer, "", "active"), "true") == 0;
}

Test(introspect, none_is_active_once_the_revocation_is_answered)
{
    asking_race(&(struct asking_race){"/check/introspect", prepare, count_good});
}
