/* What people change about themselves: judged like a step-up or a sign-in, with the same work whatever is wrong. */
#include "fake_world.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(my_account, .init = world_begin, .fini = world_end);

#define BY_USER SESSION_COOKIE RIGHT_CSRF JSON_TYPE
#define CHANGE(code, password) \
    "{\"current_password\":\"correct horse\",\"totp\":\"" code "\",\"new_password\":\"" password "\"}"
#define STRONG "seven herons read 9 maps"
#define PROOF(code) "{\"password\":\"correct horse\",\"totp\":\"" code "\"}"
#define RECOVERY(code) "{\"email\":\"A@b.test\",\"password\":\"correct horse\",\"recovery_code\":\"" code "\"}"
#define TICKET "{\"ticket\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"totp\":\"%s\"}"

static struct http_request *post(const char *target, const char *body)
{
    return request_send(HTTP_POST, target, BY_USER, body);
}

static void expect_code(struct http_request *request, enum problem_code code)
{
    cr_assert_eq(answer_problem(request)->code, code, "%s", answer_body(request));
    cr_assert_null(strstr(answer_headers(request), "Set-Cookie"));
    request_forget(request);
}

Test(my_account, password_right)
{
    struct http_request *request = post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG));

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-session="));
    cr_assert(strstr(answer_body(request), "\"step_up_expires_at\""));
    cr_assert_null(strstr(answer_body(request), STRONG));
    cr_assert(world.proofs == 1 && world.rehashes == 1 && world.password_changes == 1 && world.failures == 0);
    cr_assert(strstr(world.counters, "session:") && strstr(world.counters, ",user:"));
    cr_assert_eq(world.password_bytes, strlen(STRONG));
    cr_assert_eq(world.wipes, 1);
    request_forget(request);
}

/* Nothing is hashed anew before the old password and the code were right. */
Test(my_account, password_wrong)
{
    expect_code(post("/v1/console/password", CHANGE("000000", STRONG)), PROBLEM_INVALID_LOGIN);
    cr_assert(world.only_code_wrong && world.failures == 1);
    world.password_result = PASSWORD_DIFFERS;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_INVALID_LOGIN);
    world.password_result = PASSWORD_MATCHES;
    world.user_locked = true;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_INVALID_LOGIN);
    cr_assert(world.failures == 3 && world.rehashes == 0 && world.password_changes == 0);
    world.attempt_result = STORE_REFUSED;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_RATE_LIMITED);
    cr_assert_eq(world.proofs, 3);
}

Test(my_account, password_too_weak_costs_no_attempt)
{
    static const char *const WEAK[] = {CHANGE(RIGHT_CODE, "short"), CHANGE(RIGHT_CODE, "password1234"),
                                       CHANGE(RIGHT_CODE, "correct horse"), CHANGE("12345", STRONG)};

    for (size_t i = 0; i < sizeof WEAK / sizeof *WEAK; i++)
        expect_code(post("/v1/console/password", WEAK[i]), PROBLEM_PARAMETER_INVALID);
    snprintf(world.session.user.account_name, sizeof world.session.user.account_name, "Zwolfhagen");
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, "Zwolfhagen2026")), PROBLEM_PARAMETER_INVALID);
    cr_assert(world.proofs == 0 && world.failures == 0 && world.counters[0] == '\0');
}

Test(my_account, password_without_a_verdict)
{
    world.rehash_fails = true;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_OVERLOADED);
    world.service.draining = false;
    cr_assert_eq(world.given_back, 1);
    world.rehash_fails = false;
    world.create_result = STORE_UNKNOWN;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_STORE_UNAVAILABLE);
    world.create_result = STORE_NOT_FOUND;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_INVALID_SESSION);
    world.create_result = STORE_CONFLICT;
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_TOTP_ALREADY_USED);
    cr_assert(world.failures == 0 && world.given_back == 4);
    world.create_result = STORE_REFUSED; /* locked meanwhile */
    expect_code(post("/v1/console/password", CHANGE(RIGHT_CODE, STRONG)), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 1);
}

Test(my_account, an_expired_password_opens_four_routes)
{
    static const struct {
        enum http_method method;
        const char *target, *body;
        bool is_open;
    } CASES[] = {
        {HTTP_GET, "/v1/console/session", NULL, true},
        {HTTP_POST, "/v1/console/step_up", PROOF(RIGHT_CODE), true},
        {HTTP_POST, "/v1/console/password", CHANGE(RIGHT_CODE, STRONG), true},
        {HTTP_POST, "/v1/auth/logout", "{}", true},
        {HTTP_GET, "/v1/console/sessions", NULL, false},
        {HTTP_DELETE, "/v1/console/sessions", "{}", false},
        {HTTP_POST, "/v1/console/totp", PROOF(RIGHT_CODE), false},
        {HTTP_POST, "/v1/console/recovery_codes", "{}", false},
        {HTTP_GET, "/v1/console/api_keys", NULL, false},
        {HTTP_POST, "/v1/console/api_keys", "{\"name\":\"x\",\"mode\":\"test\"}", false},
        {HTTP_DELETE, "/v1/console/api_keys/key_01jd0000000000000000000001", "{}", false},
    };

    world.session.password_expired = true;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request = request_send(CASES[i].method, CASES[i].target, BY_USER, CASES[i].body);

        if (CASES[i].is_open)
            cr_expect_lt(answer_status(request), 300, "%s: %s", CASES[i].target, answer_body(request));
        else
            cr_expect_eq(answer_problem(request)->code, PROBLEM_PASSWORD_CHANGE_REQUIRED, "%s", CASES[i].target);
        request_forget(request);
    }
}

static const char *right_code(void)
{
    static char code[TOTP_DIGITS + 1];
    struct totp_secret secret;

    cr_assert(keyring_open(world.service.keyring, id_text(&world.session.user.id), world.waiting.totp.bytes,
                           sizeof world.waiting.totp.bytes, secret.bytes));
    totp_print(secret.bytes, sizeof secret.bytes, totp_step(world.wall_ms), TOTP_DIGITS, code);
    return code;
}

static struct http_request *confirm(const char *code)
{
    char body[64];

    snprintf(body, sizeof body, "{\"totp\":\"%s\"}", code);
    return post("/v1/console/totp/confirm", body);
}

/* The secret that was shown is the one that was sealed. */
static void expect_uri(const struct http_request *request)
{
    struct totp_secret sealed, shown;
    const char *uri = strstr(answer_body(request), "otpauth://");

    cr_assert(uri, "%s", answer_body(request));
    cr_assert(totp_parse_uri((struct text){uri, strcspn(uri, "\"")}, &shown));
    cr_assert(keyring_open(world.service.keyring, id_text(&world.session.user.id), world.waiting.totp.bytes,
                           sizeof world.waiting.totp.bytes, sealed.bytes));
    cr_assert_arr_eq(shown.bytes, sealed.bytes, sizeof shown.bytes);
}

Test(my_account, a_new_authenticator)
{
    struct http_request *request = post("/v1/console/totp", PROOF(RIGHT_CODE));

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    expect_uri(request);
    request_forget(request);
    expect_code(confirm(strcmp(right_code(), "000000") == 0 ? "000001" : "000000"), PROBLEM_PARAMETER_INVALID);
    cr_assert_eq(world.confirms, 0);
    request = confirm(right_code());
    cr_assert_eq(answer_status(request), 204, "%s", answer_body(request));
    cr_assert(world.confirms == 1 && world.confirmed_by_session);
    request_forget(request);
    world.confirm_result = STORE_NOT_FOUND;
    expect_code(confirm(right_code()), PROBLEM_AUTHENTICATOR_NOT_FOUND);
    world.confirm_result = STORE_UNKNOWN;
    expect_code(confirm(right_code()), PROBLEM_STORE_UNAVAILABLE);
    world.confirm_result = STORE_ACTOR_UNKNOWN;
    expect_code(confirm(right_code()), PROBLEM_INVALID_SESSION);
    world.waiting_result = STORE_NOT_FOUND;
    expect_code(confirm(right_code()), PROBLEM_AUTHENTICATOR_NOT_FOUND);
    expect_code(confirm("12345x"), PROBLEM_PARAMETER_INVALID);
}

Test(my_account, a_new_authenticator_needs_the_old_one)
{
    expect_code(post("/v1/console/totp", PROOF("000000")), PROBLEM_INVALID_LOGIN);
    world.totp_begin_result = STORE_CONFLICT;
    expect_code(post("/v1/console/totp", PROOF(RIGHT_CODE)), PROBLEM_TOTP_ALREADY_USED);
    world.totp_begin_result = STORE_REFUSED;
    world.retry_after_s = 60;
    expect_code(post("/v1/console/totp", PROOF(RIGHT_CODE)), PROBLEM_RATE_LIMITED);
    world.totp_begin_result = STORE_UNAVAILABLE;
    expect_code(post("/v1/console/totp", PROOF(RIGHT_CODE)), PROBLEM_STORE_UNAVAILABLE);
    cr_assert_eq(world.failures, 1);
}

static struct http_request *recover(const char *body)
{
    return request_send(HTTP_POST, "/v1/auth/recover", JSON_TYPE, body);
}

Test(my_account, recovery)
{
    char body[128];

    world.recovery_code_fits = true;
    struct http_request *request = recover(RECOVERY("7k4m 0pxr-9d2e-wq5t"));
    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    expect_uri(request);
    cr_assert(strstr(answer_body(request), "\"ticket\":\""));
    cr_assert_null(strstr(answer_headers(request), "Set-Cookie"), "nobody is signed in");
    cr_assert(world.had_recovery_code && world.recoveries == 1 && world.failures == 0 && world.creations == 0);
    cr_assert(strstr(world.counters, "email:") && strstr(world.counters, ",pair:"));
    request_forget(request);
    snprintf(body, sizeof body, TICKET, right_code());
    request = request_send(HTTP_POST, "/v1/auth/recover/confirm", JSON_TYPE, body);
    cr_assert_eq(answer_status(request), 204, "%s", answer_body(request));
    cr_assert(world.confirms == 1 && !world.confirmed_by_session);
    request_forget(request);
}

/* One answer, and the same calls in the same order: one to begin, one hash, one to fail. */
Test(my_account, recovery_wrong)
{
    for (int i = 0; i < 5; i++) {
        world.failures = world.proofs = world.recoveries = 0;
        world.user_known = i != 0;
        world.password_result = i == 1 ? PASSWORD_DIFFERS : PASSWORD_MATCHES;
        world.recovery_code_fits = i != 2;
        world.user_locked = i == 3;
        world.recovery_result = i == 4 ? STORE_NOT_FOUND : STORE_OK;
        expect_code(recover(RECOVERY("0000-0000-0000-0000")), PROBLEM_INVALID_LOGIN);
        cr_assert(world.proofs == 1 && world.failures == 1, "case %d", i);
        cr_assert_eq(world.had_hash, i != 0);
        cr_assert_eq(world.recoveries, i == 4);
        cr_assert(i == 0 || world.only_code_wrong == (i == 2), "case %d", i);
    }
}

Test(my_account, recovery_is_throttled_like_a_sign_in)
{
    world.recovery_code_fits = true;
    world.attempt_result = STORE_REFUSED;
    expect_code(recover(RECOVERY("0000-0000-0000-0000")), PROBLEM_RATE_LIMITED);
    cr_assert_eq(world.proofs, 0);
    world.attempt_result = STORE_OK;
    world.recovery_result = STORE_REFUSED;
    world.retry_after_s = 60;
    struct http_request *request = recover(RECOVERY("0000-0000-0000-0000"));
    cr_assert_eq(answer_problem(request)->retry_after_s, 60);
    expect_code(request, PROBLEM_RATE_LIMITED);
    world.retry_after_s = 0; /* locked meanwhile */
    expect_code(recover(RECOVERY("0000-0000-0000-0000")), PROBLEM_INVALID_LOGIN);
    world.recovery_result = STORE_UNKNOWN;
    expect_code(recover(RECOVERY("0000-0000-0000-0000")), PROBLEM_STORE_UNAVAILABLE);
    world.password_result = PASSWORD_OVERLOADED;
    expect_code(recover(RECOVERY("0000-0000-0000-0000")), PROBLEM_OVERLOADED);
}

Test(my_account, recovery_codes)
{
    struct http_request *request =
        request_send(HTTP_POST, "/v1/console/recovery_codes", SESSION_COOKIE RIGHT_CSRF, NULL);
    const char *at;
    unsigned count = 0;

    cr_assert_eq(answer_status(request), 201, "%s", answer_body(request));
    for (at = strchr(answer_body(request), '-'); at; at = strchr(at + 1, '-'))
        count++;
    cr_assert_eq(count, 30, "ten codes of four groups: %s", answer_body(request));
    request_forget(request);
    request = request_send(HTTP_GET, "/v1/console/recovery_codes", SESSION_COOKIE, NULL);
    cr_assert_str_eq(answer_body(request), "{\"remaining\":7,\"created_at\":\"1970-01-01T00:00:01.000Z\"}");
    request_forget(request);
    world.codes_result = STORE_ACTOR_UNPROVEN;
    expect_code(request_send(HTTP_POST, "/v1/console/recovery_codes", SESSION_COOKIE RIGHT_CSRF, NULL),
                PROBLEM_STEP_UP_REQUIRED);
    world.codes_result = STORE_UNAVAILABLE;
    expect_code(request_send(HTTP_GET, "/v1/console/recovery_codes", SESSION_COOKIE, NULL), PROBLEM_STORE_UNAVAILABLE);
    world.codes_result = STORE_OK;
    world.session.step_up_expires_ms = 0;
    expect_code(request_send(HTTP_POST, "/v1/console/recovery_codes", SESSION_COOKIE RIGHT_CSRF, NULL),
                PROBLEM_STEP_UP_REQUIRED);
}

static struct http_request *end_session(const char *target)
{
    return request_send(HTTP_DELETE, target, SESSION_COOKIE RIGHT_CSRF, NULL);
}

Test(my_account, sessions)
{
    struct http_request *request;

    world.sessions[0] = (struct session_row){.sid = "older", .created_ms = 1, .seen_ms = 1};
    world.sessions[1] = (struct session_row){.sid = "AAAAAAAAAAAAAAAAAAAAAA", .created_ms = 1, .seen_ms = 2};
    world.session_count = 2;
    request = request_send(HTTP_GET, "/v1/console/sessions", SESSION_COOKIE, NULL);
    cr_assert_eq(answer_status(request), 200);
    const char *first = strstr(answer_body(request), "sess_AAAA"), *second = strstr(answer_body(request), "sess_older");
    cr_assert(first && second && first < second, "the latest used first: %s", answer_body(request));
    request_forget(request);

    request = end_session("/v1/console/sessions/sess_older");
    cr_assert_eq(answer_status(request), 204);
    cr_assert(strcmp(world.stopped, "older") == 0 && !world.keeps_session && world.needs_step_up);
    cr_assert_null(strstr(answer_headers(request), "Set-Cookie"));
    request_forget(request);
    request = end_session("/v1/console/sessions/sess_AAAAAAAAAAAAAAAAAAAAAA");
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-session=;"), "signs out");
    cr_assert_not(world.needs_step_up);
    request_forget(request);
    request = end_session("/v1/console/sessions");
    cr_assert_str_eq(answer_body(request), "{\"sessions_ended\":2}");
    cr_assert(world.stopped[0] == '\0' && world.keeps_session && world.needs_step_up, "all but this one");
    request_forget(request);
    world.stop_result = STORE_NOT_FOUND;
    expect_code(end_session("/v1/console/sessions/sess_older"), PROBLEM_SESSION_NOT_FOUND);
    /* The step-up ran out after the handler had looked. */
    world.stop_result = STORE_ACTOR_UNPROVEN;
    expect_code(end_session("/v1/console/sessions/sess_older"), PROBLEM_STEP_UP_REQUIRED);
    expect_code(end_session("/v1/console/sessions"), PROBLEM_STEP_UP_REQUIRED);
    world.stop_result = STORE_UNKNOWN;
    expect_code(end_session("/v1/console/sessions"), PROBLEM_STORE_UNAVAILABLE);
    expect_code(end_session("/v1/console/sessions/sess_older"), PROBLEM_STORE_UNAVAILABLE);
    world.stop_result = STORE_OK;
    world.stopped[0] = '?';
    /* An empty name would end all of them. */
    expect_code(end_session("/v1/console/sessions/sess_"), PROBLEM_SESSION_NOT_FOUND);
    expect_code(end_session("/v1/console/sessions/older"), PROBLEM_SESSION_NOT_FOUND);
    cr_assert_eq(world.stopped[0], '?');
}

Test(my_account, a_sign_in_says_from_which_browser)
{
    static const char LOGIN[] = "{\"email\":\"A@b.test\",\"password\":\"correct horse\",\"totp\":\"" RIGHT_CODE "\"}";
    struct http_request *request =
        request_send(HTTP_POST, "/v1/auth/login", JSON_TYPE "User-Agent: x (Windows NT 10.0) Firefox/140.0\n", LOGIN);

    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(world.browser, "Firefox on Windows");
    request_forget(request);
    request_forget(request_send(HTTP_POST, "/v1/auth/login", JSON_TYPE, LOGIN));
    cr_assert_str_eq(world.browser, "Unknown browser");
    request_forget(request_send(HTTP_GET, "/v1/console/session", SESSION_COOKIE, NULL));
    cr_assert_str_eq(world.client_ip, "192.0.2.1");
    request_forget(request_check(HTTP_GET, "/check/ext-authz/v1/console/session", SESSION_COOKIE, NULL));
    cr_assert_str_eq(world.client_ip, "", "the address of a gateway says nothing");
}
