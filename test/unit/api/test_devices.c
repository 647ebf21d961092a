/* Enrolment of devices: responses to OAuth clients and to users; and no key stays active whose secret nobody
 * received. */
#include "core/secret.h"
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(devices, .init = world_begin, .fini = world_end);

#define CODE "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define GRANT "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
#define POLL GRANT "&device_code=" CODE "&client_id=desktop-agent"

static bool says(const struct http_request *request, const char *text)
{
    return strstr(answer_body(request), text) != NULL;
}

static void expect_oauth_error(const char *target, const char *body, const char *error)
{
    struct http_request *request = request_send(HTTP_POST, target, FORM_TYPE, body);
    char expected[64];

    snprintf(expected, sizeof expected, "{\"error\":\"%s\",\"error_description\":\"", error);
    cr_expect_eq(answer_status(request), 400, "%s: %d", body, answer_status(request));
    cr_expect(says(request, expected), "%s: %s", body, answer_body(request));
    cr_expect(strstr(answer_headers(request), "Pragma: no-cache"), "%s", answer_headers(request));
    request_forget(request);
}

Test(devices, metadata)
{
    struct http_request *request = request_send(HTTP_GET, "/.well-known/oauth-authorization-server", "", NULL);

    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(answer_body(request),
                     "{\"issuer\":\"https://console.test\",\"token_endpoint\":\"https://console.test/v1/auth/token\","
                     "\"device_authorization_endpoint\":\"https://console.test/v1/auth/device_authorization\","
                     "\"revocation_endpoint\":\"https://console.test/v1/auth/revoke\","
                     "\"jwks_uri\":\"https://console.test/.well-known/jwks.json\","
                     "\"scopes_supported\":[\"documents:write\"],\"response_types_supported\":[],"
                     "\"grant_types_supported\":[\"urn:ietf:params:oauth:grant-type:device_code\"],"
                     "\"token_endpoint_auth_methods_supported\":[\"none\"],"
                     "\"revocation_endpoint_auth_methods_supported\":[\"none\"]}");
    request_forget(request);
}

Test(devices, a_wrong_authorization_request)
{
    static const struct {
        const char *body, *error;
    } CASES[] = {
        {"", "invalid_request"},
        {"client_id=", "invalid_request"},
        {"client_id=desktop-agent&client_id=desktop-agent", "invalid_request"},
        {"client_id=%00", "invalid_request"},
        {"client_id=other", "invalid_client"},
        {"client_id=desktop-agent&scope=patients:read", "invalid_scope"},
        {"client_id=desktop-agent&scope=documents:write+patients:read", "invalid_scope"},
        {"client_id=desktop-agent&scope=documents:write+documents:write", "invalid_scope"},
        {"client_id=desktop-agent&device_name=a%0Ab", "invalid_request"},
        {"client_id=desktop-agent&device_name=The+service", "invalid_request"},
        {"client_id=desktop-agent&device_name=ada%40example.org", "invalid_request"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_oauth_error("/v1/auth/device_authorization", CASES[i].body, CASES[i].error);
    cr_assert_eq(world.begins, 0);
}

Test(devices, an_authorization)
{
    struct http_request *request =
        request_send(HTTP_POST, "/v1/auth/device_authorization", FORM_TYPE,
                     "client_id=desktop-agent&scope=documents%3Awrite&device_name=Ward+PC&unknown=1");

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_assert_str_eq(world.device_name, "Ward PC");
    cr_assert_eq(world.wipes, 1);
    cr_assert(says(request, "\"verification_uri\":\"https://console.test/console/activate\""));
    cr_assert(says(request, "\"verification_uri_complete\":\"https://console.test/console/activate?user_code="));
    cr_assert(says(request, "\"expires_in\":600,\"interval\":5}"));
    cr_assert(strstr(answer_headers(request), "Pragma: no-cache"));
    request_forget(request);

    request = request_send(HTTP_POST, "/v1/auth/device_authorization", FORM_TYPE, "client_id=desktop-agent&scope=");
    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(world.device_name, "desktop-agent");
    request_forget(request);
}

Test(devices, codes_that_are_taken_are_made_again)
{
    struct http_request *request;

    world.begin_conflicts = 2;
    request = request_send(HTTP_POST, "/v1/auth/device_authorization", FORM_TYPE, "client_id=desktop-agent");
    cr_assert_eq(answer_status(request), 200);
    cr_assert_eq(world.begins, 3);
    request_forget(request);

    world.begins = 0;
    world.begin_conflicts = 100;
    request = request_send(HTTP_POST, "/v1/auth/device_authorization", FORM_TYPE, "client_id=desktop-agent");
    cr_assert_eq(answer_status(request), 500);
    cr_assert_eq(world.begins, 3);
    request_forget(request);
}

/* RFC 6749 section 5.2: clients of OAuth read a text as the error, and end the sign-in over anything else. */
static void expect_oauth_answer(struct http_request *request, int status, const char *error, const char *told)
{
    char expected[64];

    snprintf(expected, sizeof expected, "{\"error\":\"%s\",\"error_description\":\"", error);
    cr_expect_eq(answer_status(request), status, "%s: %d", told, answer_status(request));
    cr_expect_eq(strncmp(answer_body(request), expected, strlen(expected)), 0, "%s: %s", told, answer_body(request));
    cr_expect(says(request, told), "%s: %s", told, answer_body(request));
    cr_expect(strstr(answer_headers(request), "Pragma: no-cache"), "%s", answer_headers(request));
    request_forget(request);
}

static const char *const OAUTH_TARGETS[] = {"/v1/auth/device_authorization", "/v1/auth/token"};

Test(devices, whatever_refuses_speaks_oauth)
{
    static const struct {
        enum http_method method;
        const char *headers;
        int status;
        const char *told;
    } CASES[] = {
        {HTTP_POST, JSON_TYPE, 415, "x-www-form-urlencoded"},
        {HTTP_POST, "Content-Type: multipart/form-data\n", 415, "x-www-form-urlencoded"},
        {HTTP_POST, "", 415, "x-www-form-urlencoded"},
        {HTTP_POST, "Content-Type: application/x-www-form-urlencoded; charset=latin1\n", 415, "not in latin1"},
        {HTTP_POST, FORM_TYPE "Content-Encoding: gzip\n", 415, "Content-Encoding"},
        {HTTP_POST, FORM_TYPE "Origin: https://elsewhere.test\n", 403, "Origin"},
        {HTTP_POST, FORM_TYPE "Authorization: Bearer\n", 400, "Authorization"},
        {HTTP_GET, "", 405, "method"},
        {HTTP_DELETE, "", 405, "method"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t t = 0; t < 2; t++)
            expect_oauth_answer(request_send(CASES[i].method, OAUTH_TARGETS[t], CASES[i].headers,
                                             CASES[i].method == HTTP_POST ? "client_id=desktop-agent" : NULL),
                                CASES[i].status, "invalid_request", CASES[i].told);
}

Test(devices, a_wrong_token_request)
{
    static const struct {
        const char *body, *error;
    } CASES[] = {
        {"", "invalid_request"},
        {"device_code=" CODE "&client_id=desktop-agent", "invalid_request"},
        {"grant_type=password", "unsupported_grant_type"},
        {"grant_type=client_credentials&client_id=other", "unsupported_grant_type"},
        {GRANT "&client_id=desktop-agent", "invalid_request"},
        {GRANT "&device_code=" CODE, "invalid_request"},
        {GRANT "&device_code=" CODE "&client_id=other", "invalid_client"},
        {GRANT "&device_code=x&client_id=desktop-agent", "invalid_grant"},
        {POLL "&" GRANT, "invalid_request"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_oauth_error("/v1/auth/token", CASES[i].body, CASES[i].error);
    cr_assert_eq(world.polls, 0);
}

Test(devices, what_polls_are_told)
{
    static const struct {
        enum store_result result;
        enum device_refusal refusal;
        const char *error;
    } CASES[] = {
        {STORE_NOT_FOUND, 0, "invalid_grant"},
        {STORE_REFUSED, DEVICE_PENDING, "authorization_pending"},
        {STORE_REFUSED, DEVICE_SLOW_DOWN, "slow_down"},
        {STORE_REFUSED, DEVICE_DENIED, "access_denied"},
        {STORE_REFUSED, DEVICE_EXPIRED, "expired_token"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world.poll_result = CASES[i].result;
        world.poll.refusal = CASES[i].refusal;
        expect_oauth_error("/v1/auth/token", POLL, CASES[i].error);
    }
    cr_assert_eq(world.discards, 0);
}

static void expect_throttled(enum http_method method, const char *target)
{
    struct http_request *request = request_send(method, target, SESSION_COOKIE RIGHT_CSRF, NULL);

    cr_expect_eq(answer_problem(request)->code, PROBLEM_RATE_LIMITED, "%s", target);
    cr_expect_eq(answer_problem(request)->retry_after_s, 30, "%s", target);
    request_forget(request);
}

Test(devices, throttled)
{
    world.begin_result = world.poll_result = world.enrolment_result = STORE_REFUSED;
    world.poll.refusal = DEVICE_THROTTLED;
    world.poll.retry_after_s = 30;
    for (size_t t = 0; t < 2; t++) {
        struct http_request *request =
            request_send(HTTP_POST, OAUTH_TARGETS[t], FORM_TYPE, t ? POLL : "client_id=desktop-agent");

        cr_expect_eq(answer_problem(request)->retry_after_s, 30);
        expect_oauth_answer(request, 400, "slow_down", "");
    }
    expect_throttled(HTTP_GET, "/v1/console/device_enrolments/WDJB-MJHT");
    expect_throttled(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/deny");
}

Test(devices, what_the_store_refuses_speaks_oauth)
{
    static const struct {
        enum store_result result;
        int status;
        const char *error;
    } CASES[] = {
        {STORE_FULL, 400, "access_denied"},
        {STORE_SUSPENDED, 400, "access_denied"},
        {STORE_LEAVING, 400, "slow_down"},
        {STORE_UNAVAILABLE, 503, "temporarily_unavailable"},
        {STORE_UNKNOWN, 503, "temporarily_unavailable"},
        {STORE_CONFLICT, 500, "server_error"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world.poll_result = CASES[i].result;
        expect_oauth_answer(request_send(HTTP_POST, "/v1/auth/token", FORM_TYPE, POLL), CASES[i].status, CASES[i].error,
                            "");
    }
    world.service.refuses_new = true;
    for (size_t t = 0; t < 2; t++)
        expect_oauth_answer(request_send(HTTP_POST, OAUTH_TARGETS[t], FORM_TYPE, POLL), 503, "temporarily_unavailable",
                            "");
}

/* Not against the whole account: one user must not lock out the others. */
Test(devices, wrong_user_codes_count_against_the_user)
{
    char tag[THROTTLE_TAG_CHARS + 1];

    request_forget(request_send(HTTP_GET, "/v1/console/device_enrolments/WDJB-MJHT", SESSION_COOKIE, NULL));
    memcpy(tag, world.user_code_tag, sizeof tag);
    request_forget(
        request_send(HTTP_POST, "/v1/console/device_enrolments/BBBB-BBBB/deny", SESSION_COOKIE RIGHT_CSRF, NULL));
    cr_assert_str_eq(world.user_code_tag, tag, "whatever the code and what is asked");
    cr_assert(id_parse(ID_USER, TEXT("usr_01jd0000000000000000000009"), &world.session.user.id));
    request_forget(request_send(HTTP_GET, "/v1/console/device_enrolments/WDJB-MJHT", SESSION_COOKIE, NULL));
    cr_assert_str_neq(world.user_code_tag, tag);
}

static void claim_with(enum store_result result, bool delivered, bool leaves, int status, unsigned discards)
{
    struct http_request *request;

    world.discards = 0;
    world.poll_result = result;
    world.delivered = delivered;
    world.poll = (struct device_poll){.account = world.session.user.account,
                                      .approver = world.session.user.id,
                                      .name = TEXT("Ward PC"),
                                      .scopes = SCOPE_DOCUMENTS_WRITE};
    request = (leaves ? request_send_and_leave : request_send)(HTTP_POST, "/v1/auth/token", FORM_TYPE, POLL);
    cr_assert_eq(answer_status(request), status, "%d", answer_status(request));
    cr_assert_eq(world.discards, discards, "%u discards", world.discards);
    cr_assert_eq(says(request, "svc_dk_"), status == 200, "%s", answer_body(request));
    request_forget(request);
}

Test(devices, a_claimed_key_whose_secret_nobody_got_is_discarded)
{
    claim_with(STORE_OK, true, false, 200, 0);
    claim_with(STORE_OK, false, false, 200, 1);
    claim_with(STORE_OK, false, true, 0, 1);
    claim_with(STORE_UNKNOWN, true, false, 503, 1);
    claim_with(STORE_UNKNOWN, true, true, 0, 1);
    claim_with(STORE_UNAVAILABLE, true, false, 503, 0);
    claim_with(STORE_REFUSED, true, false, 400, 0);
}

Test(devices, the_token_is_a_device_key)
{
    struct http_request *request;
    const char *secret;
    enum key_kind kind;
    enum key_mode mode;

    world.poll.scopes = SCOPE_DOCUMENTS_WRITE;
    snprintf(world.poll.account_name, sizeof world.poll.account_name, "North");
    request = request_send(HTTP_POST, "/v1/auth/token", FORM_TYPE, POLL);
    secret = strstr(answer_body(request), "{\"access_token\":\"");
    cr_assert(secret);
    cr_assert(secret_parse((struct text){secret + 17, 7 + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS}, &kind, &mode));
    cr_assert_eq(kind, KEY_DEVICE);
    cr_assert_eq(world.wipes, 1);
    cr_assert(says(request, "\",\"token_type\":\"Bearer\",\"scope\":\"documents:write\",\"account_name\":\"North\"}"),
              "%s", answer_body(request));
    cr_assert(strstr(answer_headers(request), "Pragma: no-cache"));
    request_forget(request);
}

Test(devices, users_see_what_they_decide)
{
    struct http_request *request;

    world.enrolment = (struct device_enrolment){.client = TEXT("desktop-agent"),
                                                .name = TEXT("Ward \"1\""),
                                                .ip = TEXT("192.0.2.9"),
                                                .scopes = SCOPE_DOCUMENTS_WRITE,
                                                .created_ms = 1000,
                                                .expires_ms = 601000,
                                                .status = DEVICE_IS_APPROVED};
    request = request_send(HTTP_GET, "/v1/console/device_enrolments/wdjb%20mjht", SESSION_COOKIE, NULL);
    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(
        answer_body(request),
        "{\"user_code\":\"WDJB-MJHT\",\"client_id\":\"desktop-agent\",\"device_name\":\"Ward \\\"1\\\"\","
        "\"scopes\":[\"documents:write\"],\"ip\":\"192.0.2.9\",\"created_at\":\"1970-01-01T00:00:01.000Z\","
        "\"expires_at\":\"1970-01-01T00:10:01.000Z\",\"status\":\"approved\"}");
    request_forget(request);

    request =
        request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/approve", SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert(answer_status(request) == 200 && world.approves);
    request_forget(request);
    request = request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/deny", SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert(answer_status(request) == 200 && !world.approves);
    request_forget(request);
}

Test(devices, what_is_no_user_code_is_not_asked_for)
{
    static const char *const CODES[] = {"x", "WDJB-MJHTT", "WDJB-MJHA", "WDJB-MJHT%2F"};

    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
        char target[96];
        struct http_request *request;

        snprintf(target, sizeof target, "/v1/console/device_enrolments/%s", CODES[i]);
        request = request_send(HTTP_GET, target, SESSION_COOKIE, NULL);
        cr_expect(answer_status(request) == 404 || answer_status(request) == 400, "%s", CODES[i]);
        request_forget(request);
    }
    cr_assert_eq(world.user_codes, 0);
}

Test(devices, unknown_codes_and_a_store_that_is_away)
{
    static const struct {
        enum store_result result;
        enum problem_code code;
    } CASES[] = {{STORE_NOT_FOUND, PROBLEM_ENROLMENT_NOT_FOUND},
                 {STORE_UNAVAILABLE, PROBLEM_STORE_UNAVAILABLE},
                 {STORE_UNKNOWN, PROBLEM_STORE_UNAVAILABLE},
                 {STORE_ACTOR_UNKNOWN, PROBLEM_INVALID_SESSION},
                 {STORE_ACTOR_UNPROVEN, PROBLEM_STEP_UP_REQUIRED},
                 {STORE_FULL, PROBLEM_KEY_LIMIT_REACHED},
                 {STORE_LIMITED, PROBLEM_RATE_LIMITED}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.enrolment_result = CASES[i].result;
        request =
            request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/approve", SESSION_COOKIE RIGHT_CSRF, NULL);
        cr_assert_eq(answer_problem(request)->code, CASES[i].code);
        cr_assert(world.needs_step_up);
        request_forget(request);
    }
}

Test(devices, approving_needs_a_step_up_and_denying_does_not)
{
    struct http_request *request;

    world.session.step_up_expires_ms = 0;
    request =
        request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/approve", SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_STEP_UP_REQUIRED);
    request_forget(request);
    request = request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/deny", SESSION_COOKIE, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_CSRF_FAILED);
    request_forget(request);
    cr_assert_eq(world.user_codes, 0);
    request = request_send(HTTP_POST, "/v1/console/device_enrolments/WDJB-MJHT/deny", SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert_eq(answer_status(request), 200);
    cr_assert_not(world.needs_step_up);
    request_forget(request);
}

Test(devices, device_keys_of_the_console)
{
    struct http_request *request;

    world.key.kind = KEY_DEVICE;
    world.key.scopes = SCOPE_DOCUMENTS_WRITE;
    request = request_send(HTTP_GET, "/v1/console/device_keys?status=active&limit=5", SESSION_COOKIE, NULL);
    cr_assert_eq(answer_status(request), 200);
    cr_assert(world.view.kind == KEY_DEVICE && !world.view.any_kind && !says(request, "\"mode\""));
    cr_assert(says(request, "\"scopes\":[\"documents:write\"]"), "%s", answer_body(request));
    request_forget(request);

    request = request_send(HTTP_GET, "/v1/console/device_keys?mode=live", SESSION_COOKIE, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_PARAMETER_UNKNOWN);
    request_forget(request);
    request = request_send(HTTP_GET, "/v1/console/device_keys?starting_after=key_01jd0000000000000000000001",
                           SESSION_COOKIE, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_PARAMETER_INVALID);
    request_forget(request);

    request = request_send(HTTP_DELETE, "/v1/console/device_keys/dev_01jd0000000000000000000001",
                           SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert(answer_status(request) == 200 && world.view.kind == KEY_DEVICE);
    request_forget(request);
    request = request_send(HTTP_DELETE, "/v1/console/device_keys/key_01jd0000000000000000000001",
                           SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_DEVICE_KEY_NOT_FOUND);
    request_forget(request);
    world.revoke_result = STORE_NOT_FOUND;
    request = request_send(HTTP_DELETE, "/v1/console/device_keys/dev_01jd0000000000000000000001",
                           SESSION_COOKIE RIGHT_CSRF, NULL);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_DEVICE_KEY_NOT_FOUND);
    request_forget(request);
}
