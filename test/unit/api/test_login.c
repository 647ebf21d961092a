/* Sign-in, step-up and sign-out: the same work and the same response, whatever is wrong. */
#include "base/metrics.h"
#include "fake_world.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

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
    cr_assert_eq(world.wipes, 2);
    cr_assert(strstr(answer_body(request), "\"attacked_at\":null"));
    request_forget(request);
}

/* Whoever was there before spellings were one keeps the email as it was written; all others have it as it is meant. */
Test(login, an_email_is_looked_for_as_written_and_as_meant)
{
    static const struct {
        const char *written, *known, *attempted;
    } CASES[] = {
        {"Ada@Clinic.example", NULL, "ada@clinic.example"},
        {"\u00c5sa@klinik.example", NULL, "\u00e5sa@klinik.example"},
        {"a\u030asa@klinik.example", NULL, "\u00e5sa@klinik.example"},
        {"\u00c5sa@Klinik.example", "\u00c5sa@klinik.example", "\u00c5sa@klinik.example"},
        {"\u00e5sa@klinik.example", "\u00c5sa@klinik.example", "\u00e5sa@klinik.example"},
        {"ada@m\u00fcnchen.example", NULL, "ada@xn--mnchen-3ya.example"},
        {"ada@m\u00fcnchen.example", "ada@m\u00fcnchen.example", "ada@m\u00fcnchen.example"},
        {"<ada>@-clinic.example", NULL, "<ada>@-clinic.example"}, /* no new user may have it */
    };
    char body[256];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world.written_email = CASES[i].known;
        snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"x\",\"totp\":\"123456\"}", CASES[i].written);
        request_forget(log_in(body));
        cr_expect_str_eq(world.attempted, CASES[i].attempted, "%s", CASES[i].written);
    }
}

Test(login, tells_the_owner_of_an_attack)
{
    world.session.attacked_ms = 1234567890123;
    struct http_request *request = log_in(LOGIN);

    cr_assert(strstr(answer_body(request), "\"attacked_at\":\"2009-02-13T23:31:30.123Z\""), "%s", answer_body(request));
    request_forget(request);
}

#define BROWSER "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

/* An unknown browser is counted by networks and email, a known one by itself. An unknown browser cookie changes
 * nothing. */
Test(login, counted_by_network_and_email_or_by_a_known_browser)
{
    static const struct {
        const char *cookies, *peer;
        bool known;
        const char *counters[5];
        enum password_part part;
    } CASES[] = {
        {"", "192.0.2.1", false, {"email:", ",pair:", ",network:"}, PASSWORD_STRANGER},
        {"", "2001:db8::1", false, {"email:", ",pair:", ",network:", ",wide:"}, PASSWORD_STRANGER},
        {"Cookie: __Host-browser=" BROWSER "\n", "192.0.2.1", false, {"pair:"}, PASSWORD_STRANGER},
        {"Cookie: __Host-browser=" BROWSER "\n", "192.0.2.1", true, {"browser:"}, PASSWORD_KNOWN},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char headers[256];

        world.peer = CASES[i].peer;
        world.browser_known = CASES[i].known;
        snprintf(headers, sizeof headers, JSON_TYPE "%s", CASES[i].cookies);
        struct http_request *request = request_send(HTTP_POST, "/v1/auth/login", headers, LOGIN);
        cr_assert_eq(answer_status(request), 200);
        for (size_t c = 0; CASES[i].counters[c]; c++)
            cr_assert(strstr(world.counters, CASES[i].counters[c]), "case %zu: %s", i, world.counters);
        cr_assert_eq(CASES[i].known, strstr(world.counters, "pair:") == NULL, "case %zu", i);
        cr_assert_eq(CASES[i].known, !text_starts_with(text_of(world.counters), TEXT("email:")),
                     "what closes is first");
        cr_assert_eq(world.turn.part, CASES[i].part, "case %zu", i);
        request_forget(request);
    }
}

static void read_counters(const char *peer, char ret_counters[512])
{
    world.peer = peer;
    request_forget(log_in(LOGIN));
    memcpy(ret_counters, world.counters, 512);
}

Test(login, one_network_is_one_stranger)
{
    static const struct {
        const char *a, *b;
        bool same;
    } CASES[] = {
        {"192.0.2.1", "192.0.2.254", true},
        {"192.0.2.1", "192.0.3.1", false},
        {"2001:db8:1:100::1", "2001:db8:1:1ff:ffff::", true},
        {"2001:db8:1:100::1", "2001:db8:1:200::1", false},
    };
    char a[512], b[512];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        read_counters(CASES[i].a, a);
        read_counters(CASES[i].b, b);
        cr_expect_eq(strcmp(a, b) == 0, CASES[i].same, "case %zu", i);
    }
    read_counters("2001:db8:1:100::1", a);
    read_counters("2001:db8:1:200::1", b);
    cr_expect_str_eq(strstr(a, ",wide:"), strstr(b, ",wide:"), "one /48");
}

/* The browser keeps its token, whoever signs in there; without one, each sign-in makes a new one. */
Test(login, the_browser_gets_its_cookie_for_a_year)
{
    struct http_request *request = log_in(LOGIN);
    const char *cookie = strstr(answer_headers(request), "Set-Cookie: __Host-browser=");

    cr_assert(cookie);
    cr_assert_eq(strcspn(cookie + 27, ";"), TOKEN_CHARS);
    cr_assert(strstr(cookie, "; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=31536000\n"));
    cr_assert_eq(strlen(world.browser_digest), 64);
    request_forget(request);

    request = request_send(HTTP_POST, "/v1/auth/login", JSON_TYPE "Cookie: __Host-browser=" BROWSER "\n", LOGIN);
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-browser=" BROWSER ";"));
    request_forget(request);
    request = request_send(HTTP_POST, "/v1/auth/login", JSON_TYPE "Cookie: __Host-browser=x\n", LOGIN);
    cr_assert_null(strstr(answer_headers(request), "__Host-browser=x;"));
    cr_assert(strstr(answer_headers(request), "Set-Cookie: __Host-browser="));
    request_forget(request);
}

Test(login, the_session_that_it_came_with_is_named)
{
    request_forget(log_in(LOGIN));
    cr_assert_not(world.presented);
    request_forget(request_send(HTTP_POST, "/v1/auth/login", SESSION_COOKIE JSON_TYPE, LOGIN));
    cr_assert(world.presented);
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

/* Every wrong login costs one hash and one write, and gets the same response. */
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
        {LOGIN, true, PASSWORD_MATCHES, STORE_NOT_FOUND},
        {LOGIN, true, PASSWORD_MATCHES, STORE_REFUSED}, /* locked meanwhile */
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
        cr_assert_eq(world.only_code_wrong, i == 1, "case %zu", i);
        cr_assert_eq(world.given_back, 0);
    }
}

/* The same calls to the store, in the same order, before the response leaves: one to begin, one to fail. */
Test(login, known_and_unknown_cost_the_same)
{
    world.password_result = PASSWORD_DIFFERS;
    for (int known = 0; known < 2; known++) {
        world.user_known = known;
        world.failures = world.creations = world.given_back = 0;
        world.fail_result = STORE_UNAVAILABLE; /* not recorded, so the response says nothing */
        expect_code(log_in(LOGIN), PROBLEM_STORE_UNAVAILABLE);
        cr_assert(world.failures == 1 && world.creations == 0 && world.given_back == 0);
    }
}

/* It looks like any other wrong login and costs as much. */
Test(login, a_locked_user_is_not_told)
{
    world.user_locked = true;
    expect_code(log_in(LOGIN), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 1);
    cr_assert_eq(world.creations, 0);
    expect_code(log_in(LOGIN_WRONG_CODE), PROBLEM_INVALID_LOGIN);
    cr_assert_not(world.only_code_wrong);
    expect_code(step_up(STEP_UP), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.creations, 0);
}

Test(login, a_disabled_user_is_not_told)
{
    world.session.user.disabled_ms = 1;
    expect_code(log_in(LOGIN), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 1);
    cr_assert_eq(world.creations, 0);
    expect_code(log_in(LOGIN_WRONG_CODE), PROBLEM_INVALID_LOGIN);
    cr_assert_not(world.only_code_wrong);
}

static int64_t metric_of_user(const char *name)
{
    static struct buf out;
    const char *found;

    buf_init(&out, 1 << 20);
    metrics_print(&out, "0");
    buf_append_char(&out, '\0');
    found = strstr(out.ptr, name);
    int64_t value = found ? strtoll(found + strlen(name), NULL, 10) : 0;
    buf_finish(&out);
    return value;
}

Test(login, attacks_and_locks_name_the_user)
{
    const char *attacks = "chatelaine_login_attacks_total{user=\"usr_01jd0000000000000000000001\"} ";
    const char *locks = "chatelaine_users_locked_total{user=\"usr_01jd0000000000000000000001\"} ";

    world.failure = (struct login_failure){.closes = true, .locks = true};
    expect_code(log_in(LOGIN_WRONG_CODE), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(metric_of_user(attacks), 1);
    cr_assert_eq(metric_of_user(locks), 1);
    expect_code(step_up(STEP_UP_WRONG_CODE), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(metric_of_user(locks), 2);
}

/* A password waits for its turn and takes time to hash. The code is judged by the time at which it arrived. */
Test(login, code_that_was_right_when_it_came)
{
    world.password_takes_ms = 120000;
    struct http_request *request = log_in(LOGIN);

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    request_forget(request);
}

/* A user who does not exist has no code: a zeroed secret must not be accepted for one. */
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

/* The limit was reached while the password was hashed, so the response does not say whether it was right. */
Test(login, throttled_meanwhile)
{
    struct http_request *request;

    world.failure.retry_after_s = 60;
    world.fail_result = STORE_REFUSED;
    request = log_in(LOGIN_WRONG_CODE);
    cr_assert_eq(answer_problem(request)->retry_after_s, 60);
    expect_code(request, PROBLEM_RATE_LIMITED);
    world.create_result = STORE_REFUSED;
    world.retry_after_s = 60;
    request = log_in(LOGIN);
    cr_assert_eq(answer_problem(request)->retry_after_s, 60);
    expect_code(request, PROBLEM_RATE_LIMITED);
    cr_assert_eq(world.given_back, 1);
    expect_code(step_up(STEP_UP), PROBLEM_RATE_LIMITED);
    expect_code(step_up(STEP_UP_WRONG_CODE), PROBLEM_RATE_LIMITED);
}

/* A hash that was not computed does not count as a failure. */
Test(login, what_came_to_no_verdict_is_given_back)
{
    struct http_request *request;

    world.password_result = PASSWORD_OVERLOADED;
    request = log_in(LOGIN);
    cr_assert_eq(answer_problem(request)->retry_after_s, 7);
    expect_code(request, PROBLEM_OVERLOADED);
    expect_code(step_up(STEP_UP), PROBLEM_OVERLOADED);
    world.password_result = PASSWORD_CANCELLED;
    expect_code(log_in(LOGIN), PROBLEM_SHUTTING_DOWN);
    expect_code(step_up(STEP_UP), PROBLEM_SHUTTING_DOWN);
    cr_assert_eq(world.given_back, 4);
    cr_assert_eq(world.failures, 0);
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
    cr_assert(world.only_code_wrong && world.turn.part == PASSWORD_KNOWN);
    cr_assert(strstr(world.counters, "session:") && strstr(world.counters, ",user:"));
    world.password_result = PASSWORD_DIFFERS;
    expect_code(step_up(STEP_UP), PROBLEM_INVALID_LOGIN);
    cr_assert_eq(world.failures, 2);
    cr_assert_eq(world.creations, 0);

    world.password_result = PASSWORD_MATCHES;
    world.create_result = STORE_CONFLICT;
    world.session.totp_step = totp_step(world.wall_ms) + 1;
    struct http_request *used = step_up(STEP_UP);
    cr_assert_eq(answer_problem(used)->retry_after_s, totp_wait_s(world.session.totp_step, world.wall_ms));
    expect_code(used, PROBLEM_TOTP_ALREADY_USED);
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
