/* The ladder: every request takes the same steps, in the order of src/api/README.md#errors. */
#include "base/metrics.h"
#include "fake_world.h"
#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(guard, .init = world_begin, .fini = world_end);

struct step {
    const char *what;
    enum http_method method;
    const char *target, *headers, *body;
    int status;
    const char *code; /* of the problem; NULL: none */
};

static void expect(const struct step *step)
{
    struct http_request *request = request_send(step->method, step->target, step->headers, step->body);
    char code[64];

    cr_assert_eq(answer_status(request), step->status, "%s: %d %s", step->what, answer_status(request),
                 answer_body(request));
    snprintf(code, sizeof code, "\"code\":\"%s\"", step->code ? step->code : "");
    cr_assert_eq(strstr(answer_body(request), code) != NULL, step->code != NULL, "%s: %s", step->what,
                 answer_body(request));
    request_forget(request);
}

#define EXPECT_ALL(steps)                                            \
    do {                                                             \
        for (size_t i = 0; i < sizeof(steps) / sizeof *(steps); i++) \
            expect(&(steps)[i]);                                     \
    } while (0)

#define TWO_COOKIES                                                       \
    "Cookie: __Host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA;" \
    " __Host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\n"
#define CREATE "{\"name\":\"n\",\"mode\":\"live\"}"

Test(guard, path)
{
    static const struct step STEPS[] = {
        {"elsewhere", HTTP_GET, "/elsewhere", GOOD_KEY, NULL, 404, "not_found"},
        {"above the API", HTTP_GET, "/v1/..", GOOD_KEY, NULL, 404, "not_found"},
        {"from the API to the pages", HTTP_GET, "/v1/../console/", GOOD_KEY, NULL, 404, "not_found"},
        {"well-known, but not here", HTTP_GET, "/.well-known/x", "", NULL, 404, "not_found"},
        {"a longer first segment", HTTP_GET, "/v12/whoami", "", NULL, 404, "not_found"},
        {"an encoded slash", HTTP_GET, "/v1%2fwhoami", GOOD_KEY, NULL, 400, "bad_request"},
        {"above the root", HTTP_GET, "/../v1/whoami", GOOD_KEY, NULL, 400, "bad_request"},
        {"no path", HTTP_OPTIONS, "*", "", NULL, 400, "bad_request"},
        {"an unreserved escape", HTTP_GET, "/v1/who%61mi", GOOD_KEY, NULL, 200, NULL},
        {"dots", HTTP_GET, "/v1/api_keys/../whoami", GOOD_KEY, NULL, 200, NULL},
        {"slashes", HTTP_GET, "//v1//whoami", GOOD_KEY, NULL, 200, NULL},
        {"from keys to the console", HTTP_GET, "/v1/api_keys/../console/session", GOOD_KEY, NULL, 401,
         "bearer_not_accepted"},
    };

    EXPECT_ALL(STEPS);
}

static const struct step KEY_CREDENTIALS[] = {
    {"none", HTTP_GET, "/v1/whoami", "", NULL, 401, "missing_credentials"},
    {"a cookie of another name", HTTP_GET, "/v1/whoami", "Cookie: a=b\n", NULL, 401, "missing_credentials"},
    {"another scheme", HTTP_GET, "/v1/whoami", "Authorization: Basic YTpi\n", NULL, 401, "missing_credentials"},
    {"a session", HTTP_GET, "/v1/whoami", SESSION_COOKIE, NULL, 401, "session_not_accepted"},
    {"two sessions", HTTP_GET, "/v1/whoami", TWO_COOKIES, NULL, 401, "session_not_accepted"},
    {"a malformed header", HTTP_GET, "/v1/whoami", "Authorization: Bearer\n", NULL, 400, "bad_request"},
    {"an unknown key", HTTP_GET, "/v1/whoami", "Authorization: Bearer x\n", NULL, 401, "invalid_api_key"},
    {"a revoked key", HTTP_GET, "/v1/whoami", "Authorization: Bearer revoked\n", NULL, 401, "api_key_revoked"},
    {"a store that is away", HTTP_GET, "/v1/whoami", "Authorization: Bearer away\n", NULL, 503, "store_unavailable"},
    {"a key", HTTP_GET, "/v1/whoami", GOOD_KEY, NULL, 200, NULL},
    {"a key beside a session", HTTP_GET, "/v1/whoami", GOOD_KEY SESSION_COOKIE, NULL, 200, NULL},
    {"credential before route", HTTP_GET, "/v1/nothing", "", NULL, 401, "missing_credentials"},
    {"credential before method", HTTP_PUT, "/v1/whoami", "", NULL, 401, "missing_credentials"},
};

Test(guard, key_credentials_at_once)
{
    EXPECT_ALL(KEY_CREDENTIALS);
}

Test(guard, a_revoked_device_key_has_a_code_of_its_own)
{
    static const struct step STEPS[] = {
        {"a revoked device key", HTTP_GET, "/v1/whoami", "Authorization: Bearer revoked\n", NULL, 401,
         "device_key_revoked"},
    };

    world.key.kind = KEY_DEVICE;
    EXPECT_ALL(STEPS);
}

/* An empty shell variable after "Bearer" gets an error of its own, at every kind of route. */
Test(guard, a_bearer_without_token_is_told)
{
    static const char *const TARGETS[] = {"/v1/whoami", "/v1/console/session", "/v1/auth/login"};

    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        struct http_request *request = request_send(HTTP_GET, TARGETS[i], "Authorization: bearer \n", NULL);

        cr_assert_eq(answer_status(request), 400, "%s", TARGETS[i]);
        cr_expect(strstr(answer_body(request), "Authorization has no token after Bearer: is the"), "%s",
                  answer_body(request));
        request_forget(request);
    }
}

Test(guard, key_credentials_later)
{
    world.checks_at_once = false;
    EXPECT_ALL(KEY_CREDENTIALS);
}

Test(guard, session_credentials)
{
    static const struct step STEPS[] = {
        {"none", HTTP_GET, "/v1/console/session", "", NULL, 401, "invalid_session"},
        {"a key", HTTP_GET, "/v1/console/session", GOOD_KEY, NULL, 401, "bearer_not_accepted"},
        {"a key beside a session", HTTP_GET, "/v1/console/session", GOOD_KEY SESSION_COOKIE, NULL, 401,
         "bearer_not_accepted"},
        {"a malformed header", HTTP_GET, "/v1/console/session", "Authorization: Bearer\n" SESSION_COOKIE, NULL, 400,
         "bad_request"},
        {"two cookies", HTTP_GET, "/v1/console/session", TWO_COOKIES, NULL, 401, "invalid_session"},
        {"not the form of a token", HTTP_GET, "/v1/console/session", "Cookie: __Host-session=x\n", NULL, 401,
         "invalid_session"},
        {"another spelling", HTTP_GET, "/v1/console/session",
         "Cookie: __host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", NULL, 401, "invalid_session"},
        {"a session", HTTP_GET, "/v1/console/session", SESSION_COOKIE, NULL, 200, NULL},
        {"credential before route", HTTP_GET, "/v1/console/nothing", "", NULL, 401, "invalid_session"},
        {"logout without a session", HTTP_POST, "/v1/auth/logout", "", NULL, 401, "invalid_session"},
        {"logout with a key", HTTP_POST, "/v1/auth/logout", GOOD_KEY, NULL, 401, "bearer_not_accepted"},
    };

    EXPECT_ALL(STEPS);
}

Test(guard, session_refusals_name_their_realm)
{
    struct http_request *request = request_send(HTTP_GET, "/v1/console/session", "", NULL);

    cr_assert(answer_problem(request)->session_realm);
    request_forget(request);
    request = request_send(HTTP_GET, "/v1/whoami", "", NULL);
    cr_assert_not(answer_problem(request)->session_realm);
    request_forget(request);
}

Test(guard, session_that_ended_or_cannot_be_known)
{
    static const struct step ENDED = {"ended", HTTP_GET, "/v1/console/session", SESSION_COOKIE,
                                      NULL,    401,      "invalid_session"};
    static const struct step AWAY = {"away", HTTP_GET, "/v1/console/session", SESSION_COOKIE,
                                     NULL,   503,      "store_unavailable"};

    world.session_result = STORE_NOT_FOUND;
    expect(&ENDED);
    world.session_result = STORE_UNAVAILABLE;
    expect(&AWAY);
    world.session_result = STORE_UNKNOWN;
    expect(&AWAY);
}

Test(guard, route_and_method)
{
    static const struct step STEPS[] = {
        {"unknown", HTTP_GET, "/v1/nothing", GOOD_KEY, NULL, 404, "not_found"},
        {"below a row", HTTP_GET, "/v1/whoami/x", GOOD_KEY, NULL, 404, "not_found"},
        {"no path of ours", HTTP_GET, "/v1", GOOD_KEY, NULL, 404, "not_found"},
        {"a method that it lacks", HTTP_PUT, "/v1/whoami", GOOD_KEY, NULL, 405, "method_not_allowed"},
        {"another backend's", HTTP_GET, "/v1/patients/7", GOOD_KEY, NULL, 404, "not_found"},
        {"writing what is read", HTTP_POST, "/v1/usage", GOOD_KEY, NULL, 405, "method_not_allowed"},
        {"HEAD", HTTP_HEAD, "/v1/whoami", GOOD_KEY, NULL, 200, NULL},
        {"ours, unless a file gives it away", HTTP_POST, "/v1/audit", GOOD_KEY, NULL, 405, "method_not_allowed"},
        {"below it", HTTP_GET, "/v1/audit/x", GOOD_KEY, NULL, 404, "not_found"},
        {"console, unknown", HTTP_GET, "/v1/console/nothing", SESSION_COOKIE, NULL, 404, "not_found"},
        {"console, method", HTTP_PUT, "/v1/console/session", SESSION_COOKIE, NULL, 405, "method_not_allowed"},
        {"auth, unknown", HTTP_GET, "/v1/auth/nothing", "", NULL, 404, "not_found"},
        {"auth, method", HTTP_GET, "/v1/auth/login", "", NULL, 405, "method_not_allowed"},
    };

    EXPECT_ALL(STEPS);
}

Test(guard, method_not_allowed_tells_what_is)
{
    struct http_request *request = request_send(HTTP_PUT, "/v1/api_keys", GOOD_KEY, NULL);

    cr_assert_str_eq(answer_problem(request)->allow, "GET, HEAD, POST");
    request_forget(request);
    request = request_send(HTTP_POST, "/v1/usage", GOOD_KEY, NULL);
    cr_assert_str_eq(answer_problem(request)->allow, "GET, HEAD");
    request_forget(request);
}

static void expect_scope(enum http_method method, const char *target, scope_set required)
{
    struct http_request *request = request_send(method, target, GOOD_KEY, NULL);

    cr_assert_eq(answer_status(request), 403, "%s: %s", target, answer_body(request));
    cr_assert_eq(answer_problem(request)->code, PROBLEM_INSUFFICIENT_SCOPE);
    cr_assert(answer_problem(request)->has_required_scopes);
    cr_assert_eq(answer_problem(request)->required_scopes, required, "%s", target);
    request_forget(request);
}

Test(guard, scopes)
{
    world.key.scopes = SCOPE_ALL & ~(SCOPE_KEYS_MANAGE | SCOPE_PATIENTS_WRITE | SCOPE_AUDIT_READ);
    expect_scope(HTTP_GET, "/v1/api_keys", SCOPE_KEYS_MANAGE);
    expect_scope(HTTP_POST, "/v1/api_keys", SCOPE_KEYS_MANAGE);
    expect_scope(HTTP_DELETE, "/v1/api_keys/x", SCOPE_KEYS_MANAGE);
    expect_scope(HTTP_DELETE, "/v1/patients/7", SCOPE_PATIENTS_WRITE);
    expect_scope(HTTP_HEAD, "/v1/audit", SCOPE_AUDIT_READ);
    expect_scope(HTTP_GET, "/v1/documents", SCOPE_NONE);
    cr_assert_eq(world.uses, 0);
}

Test(guard, refusals_of_known_keys_are_counted)
{
    static const struct step STEPS[] = {
        {"invalid key", HTTP_GET, "/v1/whoami", "Authorization: Bearer x\n", NULL, 401, "invalid_api_key"},
        {"no key", HTTP_GET, "/v1/whoami", "", NULL, 401, "missing_credentials"},
        {"unknown route", HTTP_GET, "/v1/nothing", GOOD_KEY, NULL, 404, "not_found"},
    };

    EXPECT_ALL(STEPS);
    cr_assert_eq(world.refusals[USAGE_REVOKED] + world.refusals[USAGE_SCOPE] + world.refusals[USAGE_MODE], 0);
    world.key.scopes = SCOPE_PATIENTS_READ;
    expect_scope(HTTP_GET, "/v1/api_keys", SCOPE_KEYS_MANAGE);
    expect_scope(HTTP_GET, "/v1/audit", SCOPE_AUDIT_READ);
    cr_assert_eq(world.refusals[USAGE_SCOPE], 2);
    cr_assert_str_eq(world.refusal.ip, "192.0.2.1");
    cr_assert(text_starts_with(text_of(world.refusal.request_id), TEXT("req_")));
    cr_assert_str_eq(world.refusal.route, "GET /v1/api_keys");
}

Test(guard, device_keys_write_documents_and_nothing_else)
{
    static const struct step WRITE = {"write", HTTP_POST, "/v1/documents", GOOD_KEY, NULL, 404, "not_found"};

    world.key.kind = KEY_DEVICE;
    world.key.scopes = SCOPE_DOCUMENTS_WRITE;
    expect_scope(HTTP_GET, "/v1/whoami", SCOPE_NONE);
    expect_scope(HTTP_GET, "/v1/api_keys", SCOPE_KEYS_MANAGE);
    expect_scope(HTTP_GET, "/v1/documents", SCOPE_NONE);
    expect_scope(HTTP_GET, "/v1/patients", SCOPE_PATIENTS_READ);
    cr_assert_eq(world.uses, 0);
    expect(&WRITE);
    cr_assert_eq(world.uses, 1);
}

Test(guard, accepted_checks_count_as_uses)
{
    static const struct step STEPS[] = {
        {"ours", HTTP_GET, "/v1/whoami", GOOD_KEY, NULL, 200, NULL},
        {"another backend's", HTTP_GET, "/v1/patients", GOOD_KEY, NULL, 404, "not_found"},
        {"wrong parameters come later", HTTP_GET, "/v1/whoami?x=1", GOOD_KEY, NULL, 400, "parameter_unknown"},
        {"unknown route", HTTP_GET, "/v1/nothing", GOOD_KEY, NULL, 404, "not_found"},
        {"wrong method", HTTP_PUT, "/v1/whoami", GOOD_KEY, NULL, 405, "method_not_allowed"},
        {"invalid key", HTTP_GET, "/v1/whoami", "Authorization: Bearer x\n", NULL, 401, "invalid_api_key"},
    };
    int64_t accepted = metric_values[METRIC_CHECK_ACCEPTED], invalid = metric_values[METRIC_CHECK_INVALID];

    EXPECT_ALL(STEPS);
    cr_assert_eq(world.uses, 3);
    cr_assert_eq(metric_values[METRIC_CHECK_ACCEPTED] - accepted, 3);
    cr_assert_eq(metric_values[METRIC_CHECK_INVALID] - invalid, 1);
}

/* Each check once, as what came of it. */
Test(guard, checks_are_counted_by_their_result)
{
    static const struct {
        struct step step;
        enum metric counted;
    } CASES[] = {
        {{"a key", HTTP_GET, "/v1/whoami", GOOD_KEY, NULL, 200, NULL}, METRIC_CHECK_ACCEPTED},
        {{"an unknown key", HTTP_GET, "/v1/whoami", "Authorization: Bearer x\n", NULL, 401, "invalid_api_key"},
         METRIC_CHECK_INVALID},
        {{"a revoked key", HTTP_GET, "/v1/whoami", "Authorization: Bearer revoked\n", NULL, 401, "api_key_revoked"},
         METRIC_CHECK_REVOKED},
        {{"no scope", HTTP_GET, "/v1/api_keys", GOOD_KEY, NULL, 403, "insufficient_scope"}, METRIC_CHECK_FORBIDDEN},
        {{"a store that is away", HTTP_GET, "/v1/whoami", "Authorization: Bearer away\n", NULL, 503,
          "store_unavailable"},
         METRIC_CHECK_UNAVAILABLE},
    };

    world.key.scopes = SCOPE_PATIENTS_READ;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t before[METRIC_COUNT];

        memcpy(before, metric_values, sizeof before);
        expect(&CASES[i].step);
        for (enum metric m = METRIC_CHECK_ACCEPTED; m <= METRIC_CHECK_UNAVAILABLE; m++)
            cr_expect_eq(metric_values[m] - before[m], m == CASES[i].counted, "%s", CASES[i].step.what);
    }
}

Test(guard, csrf)
{
#define DELETE_KEY HTTP_DELETE, "/v1/console/api_keys/key_01jd0000000000000000000001"
    static const struct step STEPS[] = {
        {"no token", DELETE_KEY, SESSION_COOKIE, NULL, 403, "csrf_failed"},
        {"a wrong token", DELETE_KEY, SESSION_COOKIE "X-CSRF-Token: x\n", NULL, 403, "csrf_failed"},
        {"twice", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF RIGHT_CSRF, NULL, 403, "csrf_failed"},
        {"a foreign origin", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: https://evil.test\n", NULL, 403,
         "csrf_failed"},
        {"origin null", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: null\n", NULL, 403, "csrf_failed"},
        {"a suffix", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: https://console.test.evil.test\n", NULL, 403,
         "csrf_failed"},
        {"without TLS", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: http://console.test\n", NULL, 403,
         "csrf_failed"},
        {"two origins", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: https://console.test\nOrigin: null\n", NULL, 403,
         "csrf_failed"},
        {"logout", HTTP_POST, "/v1/auth/logout", SESSION_COOKIE, NULL, 403, "csrf_failed"},
        {"before the step-up", HTTP_POST, "/v1/console/api_keys", SESSION_COOKIE JSON_TYPE, CREATE, 403, "csrf_failed"},
        {"login, foreign origin", HTTP_POST, "/v1/auth/login", "Origin: https://evil.test\n" JSON_TYPE, "{}", 403,
         "csrf_failed"},
        {"the right token", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF, NULL, 200, NULL},
        {"and our origin", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF "Origin: https://console.test\n", NULL, 200, NULL},
        {"reading needs none", HTTP_GET, "/v1/console/api_keys", SESSION_COOKIE "Origin: https://evil.test\n", NULL,
         200, NULL},
    };

    EXPECT_ALL(STEPS);
    cr_assert_eq(world.revokes, 2);
}

Test(guard, step_up)
{
    static const struct step OLD = {"too old", HTTP_POST, "/v1/console/api_keys", SESSION_COOKIE RIGHT_CSRF JSON_TYPE,
                                    CREATE,    403,       "step_up_required"};
    static const struct step FRESH = {
        "fresh", HTTP_POST, "/v1/console/api_keys", SESSION_COOKIE RIGHT_CSRF JSON_TYPE, CREATE, 201, NULL};

    world.session.step_up_expires_ms = 0;
    expect(&OLD);
    cr_assert_eq(world.inserts, 0);
    world.session.step_up_expires_ms = 1;
    expect(&FRESH);
}

/* Of a route of ours and of backends' routes; before the step-up, behind CSRF. */
Test(guard, roles)
{
    static const struct step FORGED = {"forged", HTTP_POST, "/v1/console/api_keys", SESSION_COOKIE JSON_TYPE,
                                       CREATE,   403,       "csrf_failed"};
    static const struct step LOW = {"too low", HTTP_POST, "/v1/console/api_keys", SESSION_COOKIE RIGHT_CSRF JSON_TYPE,
                                    CREATE,    403,       "role_not_permitted"};
    static const struct step READ = {"reading", HTTP_GET, "/v1/console/api_keys", SESSION_COOKIE, NULL, 200, NULL};
    static const struct step REVOKE = {"revoking", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF, NULL, 200, NULL};
    static const struct step NOT_REVOKE = {"no", DELETE_KEY, SESSION_COOKIE RIGHT_CSRF,
                                           NULL, 403,        "role_not_permitted"};

    world.session.step_up_expires_ms = 0;
    for (enum role role = ROLE_AUDITOR; role < ROLE_DEVELOPER; role++) {
        world.session.user.role = role;
        expect(&FORGED);
        expect(&LOW);
        expect(&READ);
        expect(role == ROLE_AUDITOR ? &NOT_REVOKE : &REVOKE);
    }
    cr_assert_eq(world.inserts, 0);
    cr_assert_eq(world.revokes, 1);
}

#define POST_KEYS HTTP_POST, "/v1/api_keys"
#define SECRET "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h" /* nobody's */

Test(guard, body)
{
    static const struct step STEPS[] = {
        {"no type", POST_KEYS, GOOD_KEY, CREATE, 415, "unsupported_media_type"},
        {"text", POST_KEYS, GOOD_KEY "Content-Type: text/plain\n", CREATE, 415, "unsupported_media_type"},
        {"a form", POST_KEYS, GOOD_KEY "Content-Type: application/x-www-form-urlencoded\n", "a=b", 415,
         "unsupported_media_type"},
        {"a longer type", POST_KEYS, GOOD_KEY "Content-Type: application/json-patch\n", CREATE, 415,
         "unsupported_media_type"},
        {"another charset", POST_KEYS, GOOD_KEY "Content-Type: application/json; charset=latin1\n", CREATE, 415,
         "unsupported_media_type"},
        {"one of two charsets", POST_KEYS, GOOD_KEY "Content-Type: application/json; charset=utf-8; charset=latin1\n",
         CREATE, 415, "unsupported_media_type"},
        {"no charset", POST_KEYS, GOOD_KEY "Content-Type: application/json; charset=\n", CREATE, 415,
         "unsupported_media_type"},
        {"an empty type", POST_KEYS, GOOD_KEY "Content-Type: \n", CREATE, 415, "unsupported_media_type"},
        {"none", POST_KEYS, GOOD_KEY, NULL, 400, "invalid_json"},
        {"none, typed", POST_KEYS, GOOD_KEY JSON_TYPE, NULL, 400, "invalid_json"},
        {"empty", POST_KEYS, GOOD_KEY JSON_TYPE, "", 400, "invalid_json"},
        {"no object", POST_KEYS, GOOD_KEY JSON_TYPE, "[]", 400, "invalid_json"},
        {"twice the same", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"a\",\"name\":\"b\",\"mode\":\"test\"}", 400,
         "invalid_json"},
        {"a body that nobody wants", HTTP_DELETE, "/v1/api_keys/x", GOOD_KEY, "x", 415, "unsupported_media_type"},
        {"a query that nobody wants", HTTP_POST, "/v1/api_keys?mode=test", GOOD_KEY JSON_TYPE, CREATE, 400,
         "parameter_unknown"},
        {"JSON", POST_KEYS, GOOD_KEY JSON_TYPE, CREATE, 201, NULL},
        {"JSON in UTF-8", POST_KEYS, GOOD_KEY "Content-Type: Application/JSON;charset=UTF-8\n", CREATE, 201, NULL},
        {"quoted", POST_KEYS, GOOD_KEY "Content-Type: application/json ; charset=\"utf-8\"\n", CREATE, 201, NULL},
        {"other parameters", POST_KEYS, GOOD_KEY "Content-Type: application/json; type=request; v=\"a;charset=x\"\n",
         CREATE, 201, NULL},
        {"without the hyphen", POST_KEYS, GOOD_KEY "Content-Type: application/json; CharSet=\"UTF8\"; a=b\n", CREATE,
         201, NULL},
    };

    EXPECT_ALL(STEPS);
    cr_assert_eq(world.inserts, 5);
}

static void expect_message(const char *headers, const char *says)
{
    struct http_request *request = request_send(POST_KEYS, headers, CREATE);

    cr_expect_neq(answer_status(request), 201, "%s", headers);
    cr_expect(strstr(answer_body(request), says), "%s: %s", headers, answer_body(request));
    cr_expect_not(strstr(answer_body(request), "svc_"), "%s", answer_body(request));
    request_forget(request);
}

Test(guard, a_wrong_charset_is_named)
{
    expect_message(GOOD_KEY "Content-Type: application/json; charset=windows-1252\n", "not in windows-1252.");
    expect_message(GOOD_KEY "Content-Type: application/json; charset=" SECRET "\n", "Send the body in UTF-8.");
    expect_message(GOOD_KEY "Content-Type: application/json; charset=svc_sk_live_0123\n", "Send the body in UTF-8.");
    expect_message(GOOD_KEY "Content-Type: text/json; charset=utf-8\n", "application/json");
}

/* Secrets where none belongs: refused, and not repeated. */
Test(guard, a_secret_where_none_belongs)
{
    static const struct step STEPS[] = {
        {"a name", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"for " SECRET "\",\"mode\":\"test\"}", 400,
         "secret_in_text"},
        {"a member", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"a\",\"mode\":\"test\",\"" SECRET "\":1}", 400,
         "secret_in_text"},
        {"a mode", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"a\",\"mode\":\"" SECRET "\"}", 400, "secret_in_text"},
        {"a scope", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"a\",\"mode\":\"test\",\"scopes\":[\"" SECRET "\"]}",
         400, "secret_in_text"},
        {"an email", HTTP_POST, "/v1/auth/login", JSON_TYPE, "{\"email\":\"" SECRET "@a.example\"}", 400,
         "secret_in_text"},
        {"a request id", HTTP_GET, "/v1/whoami", GOOD_KEY "X-Request-Id: " SECRET "\n", NULL, 400, "secret_in_text"},
        {"the second one", HTTP_GET, "/v1/whoami", GOOD_KEY "X-Request-Id: a\nX-Request-Id: x" SECRET "\n", NULL, 400,
         "secret_in_text"},
        {"a name of a parameter", HTTP_GET, "/v1/api_keys?" SECRET "=1", GOOD_KEY, NULL, 400, "secret_in_text"},
        {"a value, after a wrong one", HTTP_GET, "/v1/api_keys?limit=0&starting_after=" SECRET, GOOD_KEY, NULL, 400,
         "secret_in_text"},
        {"escaped", HTTP_GET, "/v1/whoami?a=svc%5Fsk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX%30h", GOOD_KEY, NULL,
         400, "secret_in_text"},
        {"without a credential", HTTP_GET, "/v1/whoami?api_key=" SECRET, "", NULL, 401, "missing_credentials"},
        {"without a session", HTTP_GET, "/v1/console/session?api_key=" SECRET, "", NULL, 401, "invalid_session"},
        {"one whose checksum is wrong", HTTP_GET, "/v1/whoami",
         GOOD_KEY "X-Request-Id: svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0i\n", NULL, 200, NULL},
    };

    EXPECT_ALL(STEPS);
    cr_assert_eq(world.inserts, 0);
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS - 1; i++) {
        struct http_request *request = request_send(STEPS[i].method, STEPS[i].target, STEPS[i].headers, STEPS[i].body);

        cr_expect(strstr(answer_body(request), "revoke it"), "%s: %s", STEPS[i].what, answer_body(request));
        cr_expect_not(strstr(answer_body(request), "svc_"), "%s: %s", STEPS[i].what, answer_body(request));
        request_forget(request);
    }
}

/* One that was cut or mistyped is no leak to act on, but most of it may be right. */
Test(guard, the_start_of_a_secret_is_not_said_again)
{
    static const struct step STEPS[] = {
        {"a parameter", HTTP_GET, "/v1/api_keys?svc_sk_live_0123456789ABCDEFGH=1", GOOD_KEY, NULL, 400,
         "parameter_unknown"},
        {"a member", POST_KEYS, GOOD_KEY JSON_TYPE, "{\"name\":\"a\",\"mode\":\"test\",\"svc_dk_0123\":1}", 400,
         "parameter_unknown"},
    };

    EXPECT_ALL(STEPS);
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        struct http_request *request = request_send(STEPS[i].method, STEPS[i].target, STEPS[i].headers, STEPS[i].body);

        cr_expect_not(strstr(answer_body(request), "svc_"), "%s: %s", STEPS[i].what, answer_body(request));
        request_forget(request);
    }
}

static void expect_body_message(const char *target, const char *body, const char *says)
{
    struct http_request *request = request_send(HTTP_POST, target, GOOD_KEY JSON_TYPE, body);

    cr_expect_eq(answer_status(request), 400, "%s", body);
    cr_expect(strstr(answer_body(request), says), "%s: %s", body, answer_body(request));
    cr_expect_not(strstr(answer_body(request), "svc_"), "%s", answer_body(request));
    request_forget(request);
}

Test(guard, the_culprit_is_named)
{
#define SCOPES(list) "{\"name\":\"a\",\"mode\":\"test\",\"scopes\":[" list "]}"
    static const char *const KEYS = "/v1/api_keys", *const REVOKE = "/v1/api_keys/revoke";

    expect_body_message(KEYS, SCOPES("\"patients:read\",\"patient:read\""),
                        "Unknown scope \\\"patient:read\\\" at scopes[1]. Did you mean patients:read?");
    expect_body_message(KEYS, SCOPES("\"svc_sk_live_0123456789\""), "Unknown scope at scopes[0].");
    expect_body_message(KEYS, SCOPES("1"), "scopes[0] must be a string");
    expect_body_message(KEYS, SCOPES(""), "at least one scope");
    expect_body_message(KEYS, "\xef\xbb\xbf" CREATE, "begins with a byte order mark");
    expect_body_message(KEYS, "{\"name\":\"a\\u202eb\",\"mode\":\"test\"}", "name has U+202E as character 2");
    expect_body_message(REVOKE, "{\"ids\":[\"key_01m8hvaes94txnr59zs6vfj4rm\",\"KEY_01M8HVAES94TXNR59ZS6VFJ4RM\"]}",
                        "ids[1] is not the id of an API key");
    expect_body_message(REVOKE, "{\"ids\":[1]}", "ids[0] is not");
    expect_body_message(KEYS, "{\"name\":\"a\",\"mode\":\"Live\"}",
                        "mode must be \\\"test\\\" or \\\"live\\\", not \\\"Live\\\". Did you mean live?");
    expect_body_message(KEYS, "{\"name\":\"a\",\"mode\":\"svc_sk_live_01\"}",
                        "mode must be \\\"test\\\" or \\\"live\\\".");
    expect_body_message(KEYS, "{\"name\":\"a\"}", "Missing parameter: mode (\\\"test\\\" or \\\"live\\\").");
    expect_body_message(KEYS, "{\"name\":5,\"mode\":\"test\"}",
                        "name must be a string of 1 to 200 characters, not a number.");
    expect_body_message(REVOKE, "{\"ids\":[]}", "ids must be an array of 1 to 10,000 ids of API keys");
}

/* No password is shown, and one that is refused could not be used any more. */
Test(guard, a_password_may_be_anything)
{
    static const struct step STEP = {"a password",
                                     HTTP_POST,
                                     "/v1/auth/login",
                                     JSON_TYPE,
                                     "{\"email\":\"ada@clinic.example\",\"password\":\"" SECRET
                                     "\",\"totp\":\"123456\"}",
                                     401,
                                     "invalid_login"};

    expect(&STEP);
}

Test(guard, a_key_in_another_header_is_told)
{
    expect_message("X-API-Key: " SECRET "\n", "came as X-API-Key");
    expect_message("Authorization: " SECRET "\n", "without the word Bearer");
    expect_message("Authorization: Token " SECRET "\n", "without the word Bearer");
    expect_message("X-API-Key: something\n", "came as X-API-Key. Send it as Authorization: Bearer");
}

Test(guard, permission_comes_before_the_body)
{
    static const struct step STEP = {"scope", POST_KEYS, GOOD_KEY, "x", 403, "insufficient_scope"};

    world.key.scopes = SCOPE_PATIENTS_READ;
    expect(&STEP);
}

Test(guard, draining)
{
    static const struct step STEP = {"draining", HTTP_GET, "/v1/whoami", GOOD_KEY, NULL, 200, NULL};
    static const struct step LATE = {"late", HTTP_GET, "/v1/whoami", GOOD_KEY, NULL, 503, "shutting_down"};

    world.service.draining = true;
    expect(&STEP);
    cr_assert_eq(world.uses, 1);
    world.service.refuses_new = true;
    expect(&LATE);
    cr_assert_eq(world.uses, 1);
}

Test(guard, client_that_left_is_no_trouble)
{
    static const char *const HEADERS[] = {GOOD_KEY, SESSION_COOKIE};
    static const char *const TARGETS[] = {"/v1/api_keys", "/v1/console/api_keys"};

    world.checks_at_once = false;
    for (size_t i = 0; i < 2; i++) {
        struct http_request *request = request_send_and_leave(HTTP_GET, TARGETS[i], HEADERS[i], NULL);

        cr_assert_eq(answer_status(request), 0);
        request_forget(request);
    }
}

/* All nodes have the same problem, so taking them out of service would not help. */
Test(guard, a_node_is_ready_with_a_store_that_is_full)
{
    struct http_request *request;

    world.store_trouble = "It is full.";
    request = request_send_internal(HTTP_GET, "/readyz");
    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(answer_body(request), "{\"status\":\"ok\",\"reason\":\"It is full.\"}");
    request_forget(request);
}

Test(guard, a_probe_learns_that_durability_is_only_asserted)
{
    struct http_request *request;

    world.asserts_durability = true;
    request = request_send_internal(HTTP_GET, "/readyz");
    cr_assert_str_eq(answer_body(request), "{\"status\":\"ok\",\"redis_durability\":\"asserted\"}");
    request_forget(request);
}

Test(guard, internal_listener)
{
    static const struct {
        enum http_method method;
        const char *target;
        bool draining, store_away;
        int status;
        const char *body;
    } CASES[] = {
        {HTTP_GET, "/livez", false, true, 200, "{\"status\":\"ok\"}"},
        {HTTP_HEAD, "/livez", true, false, 200, "{\"status\":\"ok\"}"},
        {HTTP_GET, "/readyz", false, false, 200, "{\"status\":\"ok\"}"},
        {HTTP_GET, "/readyz", false, true, 503, "{\"status\":\"unavailable\",\"reason\":\"Redis is away.\"}"},
        {HTTP_GET, "/readyz", true, false, 503, "{\"status\":\"draining\",\"reason\":\"The node is shutting down.\"}"},
        {HTTP_GET, "/metrics", false, false, 200, NULL},
        {HTTP_POST, "/livez", false, false, 405, NULL},
        {HTTP_GET, "/v1/whoami", false, false, 404, NULL},
        {HTTP_GET, "/livez/", false, false, 404, NULL},
        {HTTP_GET, "/checks", true, false, 404, NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.service.draining = CASES[i].draining;
        world.session_result = CASES[i].store_away ? STORE_UNAVAILABLE : STORE_OK;
        request = request_send_internal(CASES[i].method, CASES[i].target);
        cr_assert_eq(answer_status(request), CASES[i].status, "%s", CASES[i].target);
        if (CASES[i].body)
            cr_assert_str_eq(answer_body(request), CASES[i].body);
        request_forget(request);
    }
}

/* Redis is there, and the public listener is not: whoever asks this one would send clients to that one. */
Test(guard, a_node_that_does_not_listen_yet_is_not_ready)
{
    struct http_request *request;

    world.service.starting = true;
    request = request_send_internal(HTTP_GET, "/readyz");
    cr_assert_eq(answer_status(request), 503);
    cr_assert_str_eq(answer_body(request), "{\"status\":\"unavailable\",\"reason\":\"The node is about to serve.\"}");
    request_forget(request);
    request = request_send_internal(HTTP_GET, "/metrics");
    cr_assert_not_null(strstr(answer_body(request), "\nchatelaine_ready 0\n"));
    request_forget(request);
}
