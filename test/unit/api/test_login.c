/* Signing in, stepping up, signing out: the same work and the same answer whatever is wrong. */
#include "base/metrics.h"
#include "fake_world.h"
#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(login, .init = world_begin, .fini = world_end);

#define LOGIN "{\"email\":\"A@b.test\",\"password\":\"correct horse\",\"totp\":\"" RIGHT_CODE "\"}"
#define LOGIN_WRONG_CODE "{\"email\":\"a@b.test\",\"password\":\"correct horse\",\"totp\":\"000000\"}"
#define STEP_UP "{\"password\":\"correct horse\",\"totp\":\"" RIGHT_CODE "\"}"
#define STEP_UP_WRONG_CODE "{\"password\":\"correct horse\",\"totp\":\"000000\"}"
#define BY_USER SESSION_COOKIE RIGHT_CSRF JSON_TYPE

static struct http_request *log_in(const char *body)
{
    return request_send(HTTP_POST, "/v1/auth/login", JSON_TYPE, body);
}

static struct http_request *step_up(const char *body)
{
    return request_send(HTTP_POST, "/v1/console/step_up", BY_USER, body);
}

static void expect_code(struct http_request *request, enum problem_code code)
{
    cr_assert_eq(answer_problem(request)->code, code, "%s", answer_body(request));
    cr_assert_null(strstr(answer_headers(request), "Set-Cookie"));
    request_forget(request);
}

Test(login, right)
{
    struct http_request *request = log_in(LOGIN);
    const char *cookie = strstr(answer_headers(request), "Set-Cookie: __Host-session=");

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_assert(cookie);
    cr_assert_eq(strcspn(cookie + 27, ";"), TOKEN_CHARS);
    cr_assert(strstr(cookie, "; Path=/; Secure; HttpOnly; SameSite=Strict\n"));
    cr_assert(strstr(answer_body(request), "\"csrf_token\":\""));
    cr_assert_null(strstr(answer_body(request), "step_up_expires_at"));
    cr_assert_eq(world.creations, 1);
    cr_assert_eq(world.failures, 0);
    cr_assert_eq(world.wipes, 1);
    request_forget(request);
}

Test(login, wrong_shapes)
{
    static const struct {
        const char *body;
        enum problem_code code;
        const char *param;
    } CASES[] = {
        {"{\"password\":\"p\",\"totp\":\"000000\"}", PROBLEM_PARAMETER_MISSING, "email"},
        {"{\"email\":\"a\",\"password\":\"p\",\"totp\":\"000000\"}", PROBLEM_PARAMETER_INVALID, "email"},
        {"{\"email\":\"a@b.test\",\"password\":\"p\",\"totp\":0}", PROBLEM_PARAMETER_INVALID, "totp"},
        {"{\"email\":\"a@b.test\",\"password\":\"p\",\"totp\":\"00000\"}", PROBLEM_PARAMETER_INVALID, "totp"},
        {"{\"email\":\"a@b.test\",\"password\":\"p\",\"totp\":\"00000 \"}", PROBLEM_PARAMETER_INVALID, "totp"},
        {"{\"email\":\"a@b.test\",\"password\":\"p\",\"totp\":\"000000\",\"x\":1}", PROBLEM_PARAMETER_UNKNOWN, "x"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request = log_in(CASES[i].body);

        cr_assert_str_eq(answer_problem(request)->param, CASES[i].param, "%s", CASES[i].body);
        expect_code(request, CASES[i].code);
    }
    cr_assert_eq(world.proofs, 0);
}

/* Every wrong login costs one hash and one write, and is answered alike. */
Test(login, wrong_in_any_way)
{
    static const struct {
        const char *body;
        bool user_known;
        enum password_result password;
        enum store_result create;
    } CASES[] = {
        {LOGIN, true, PASSWORD_DIFFERS, STORE_OK},
        {LOGIN_WRONG_CODE, true, PASSWORD_MATCHES, STORE_OK},
        {LOGIN_WRONG_CODE, true, PASSWORD_DIFFERS, STORE_OK},
        {LOGIN, false, PASSWORD_DIFFERS, STORE_OK},
        {LOGIN, true, PASSWORD_MATCHES, STORE_CONFLICT},
        {LOGIN, true, PASSWORD_MATCHES, STORE_REFUSED},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world.proofs = world.failures = 0;
        world.user_known = CASES[i].user_known;
        world.password_result = CASES[i].password;
        world.create_result = CASES[i].create;
        expect_code(log_in(CASES[i].body), PROBLEM_INVALID_LOGIN);
        cr_assert_eq(world.proofs, 1, "case %zu", i);
        cr_assert_eq(world.failures, 1, "case %zu", i);
        cr_assert_eq(world.had_hash, CASES[i].user_known, "case %zu", i);
    }
}

/* A password waits for its turn, and takes its time: the code is judged by when it came. */
Test(login, code_that_was_right_when_it_came)
{
    world.password_takes_ms = 120000;
    struct http_request *request = log_in(LOGIN);

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    request_forget(request);
}

/* A user that does not exist has no code: nothing that is zero may stand for his secret. */
Test(login, unknown_user_never_gets_in)
{
    world.user_known = false;
    world.password_result = PASSWORD_MATCHES;
    expect_code(log_in(LOGIN), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.creations, 0);
}

Test(login, password_that_nobody_can_have)
{
    char body[4096], password[2000];

    memset(password, 'p', sizeof password - 1);
    password[sizeof password - 1] = '\0';
    snprintf(body, sizeof body, "{\"email\":\"a@b.test\",\"password\":\"%s\",\"totp\":\"" RIGHT_CODE "\"}", password);
    world.password_result = PASSWORD_DIFFERS;
    expect_code(log_in(body), PROBLEM_INVALID_LOGIN);
    cr_assert_not(world.had_hash);
    cr_assert_eq(world.password_bytes, PASSWORD_MAX_BYTES);
}

Test(login, throttled)
{
    int64_t throttled = metric_values[METRIC_LOGIN_THROTTLED];
    struct http_request *request;

    world.attempt_result = STORE_REFUSED;
    request = log_in(LOGIN);
    cr_assert_eq(answer_problem(request)->retry_after_s, 30);
    expect_code(request, PROBLEM_RATE_LIMITED);
    cr_assert_eq(metric_values[METRIC_LOGIN_THROTTLED], throttled + 1);
    cr_assert_eq(world.proofs, 0);
}

Test(login, no_verdict_is_no_refusal)
{
    world.attempt_result = STORE_UNAVAILABLE;
    expect_code(log_in(LOGIN), PROBLEM_STORE_UNAVAILABLE);
    world.attempt_result = STORE_OK;
    world.password_result = PASSWORD_OVERLOADED;
    expect_code(log_in(LOGIN), PROBLEM_OVERLOADED);
    world.password_result = PASSWORD_CANCELLED;
    expect_code(log_in(LOGIN), PROBLEM_SHUTTING_DOWN);
    world.password_result = PASSWORD_MATCHES;
    world.create_result = STORE_UNKNOWN;
    expect_code(log_in(LOGIN), PROBLEM_STORE_UNAVAILABLE);
    cr_assert_eq(world.failures, 0);
}

Test(login, client_that_left)
{
    struct http_request *request = request_send_and_leave(HTTP_POST, "/v1/auth/login", JSON_TYPE, LOGIN);

    cr_assert_eq(answer_status(request), 0);
    request_forget(request);
}

Test(login, step_up_right)
{
    struct http_request *request = step_up(STEP_UP);

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_assert_str_eq(answer_body(request), "{\"step_up_expires_at\":\"1970-01-01T00:00:00.001Z\"}");
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-session="));
    cr_assert_eq(world.wipes, 1);
    request_forget(request);
}

Test(login, step_up_wrong)
{
    expect_code(step_up(STEP_UP_WRONG_CODE), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 1);
    world.password_result = PASSWORD_DIFFERS;
    expect_code(step_up(STEP_UP), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 2);
    cr_assert_eq(world.creations, 0);

    world.password_result = PASSWORD_MATCHES;
    world.create_result = STORE_CONFLICT;
    expect_code(step_up(STEP_UP), PROBLEM_TOTP_ALREADY_USED);
    world.create_result = STORE_NOT_FOUND;
    expect_code(step_up(STEP_UP), PROBLEM_INVALID_SESSION);
    world.create_result = STORE_UNKNOWN;
    expect_code(step_up(STEP_UP), PROBLEM_STORE_UNAVAILABLE);
    world.attempt_result = STORE_REFUSED;
    expect_code(step_up(STEP_UP), PROBLEM_RATE_LIMITED);
}

Test(login, logout)
{
    struct http_request *request = request_send(HTTP_POST, "/v1/auth/logout", SESSION_COOKIE RIGHT_CSRF, NULL);

    cr_assert_eq(answer_status(request), 204);
    cr_assert(strstr(answer_headers(request), "Clear-Site-Data: \"cache\""));
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-session=;"));
    cr_assert(strstr(answer_headers(request), "Max-Age=0"));
    request_forget(request);
    world.end_result = STORE_UNKNOWN;
    expect_code(request_send(HTTP_POST, "/v1/auth/logout", SESSION_COOKIE RIGHT_CSRF, NULL), PROBLEM_STORE_UNAVAILABLE);
}

Test(login, session)
{
    struct http_request *request;

    world.session.expires_ms = world.wall_ms + 3600000;
    world.service.session_limits.idle_ms = 60000;
    request = request_send(HTTP_GET, "/v1/console/session", SESSION_COOKIE, NULL);
    cr_assert(strstr(answer_body(request), "\"idle_expires_at\":\"2009-02-13T23:32:30.000Z\""), "%s",
              answer_body(request));
    cr_assert(strstr(answer_body(request), "\"step_up_expires_at\":\"1970-01-01T00:00:00.001Z\""));
    cr_assert(strstr(answer_body(request), "\"email\":\"a@b.test\""));
    request_forget(request);
}
