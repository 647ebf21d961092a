/* Signing in, step-up, sessions and their ends, with real passwords and codes. Each attempt costs a password hash, so
 * that each test makes few. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(login, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static int show_session(const struct fixture *fixture, size_t node, const char *token, struct http_answer *ret_answer)
{
    return fixture_call(fixture, node, &(struct http_call){.target = "/v1/console/session", .cookie = token},
                        ret_answer);
}

Test(login, a_session_from_login_to_logout_on_two_nodes)
{
    struct fixture_session session;
    struct http_answer answer;
    struct fixture_user user;
    struct fixture fixture;
    char value[512], code[8];

    fixture_start(&fixture, 2, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_totp(&user, 0, code);
    cr_assert_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, &session, &answer), 200, "%s", answer.body);
    cr_expect(http_answer_field(&answer, "Set-Cookie", value, sizeof value));
    for (size_t i = 0; i < 4; i++) {
        static const char *const PARTS[] = {"; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"};

        cr_expect_not_null(strstr(value, PARTS[i]), "%s", value);
    }
    cr_expect_null(strstr(value, "Domain"));
    cr_expect_eq(strlen(session.token), 43);
    cr_expect(http_answer_json(&answer, "user.id", value, sizeof value) && strcmp(value, user.id) == 0);
    cr_expect(http_answer_json(&answer, "user.email", value, sizeof value) && strcmp(value, user.email) == 0);
    cr_expect(http_answer_json(&answer, "user.account_id", value, sizeof value) && strcmp(value, fixture.account) == 0);
    cr_expect(http_answer_json(&answer, "user.account_name", value, sizeof value));
    cr_expect(http_answer_json(&answer, "expires_at", value, sizeof value) && value[10] == 'T');

    cr_expect_eq(show_session(&fixture, 1, session.token, &answer), 200);
    cr_expect(http_answer_json(&answer, "csrf_token", value, sizeof value) && strcmp(value, session.csrf) == 0);

    struct http_call logout = {.method = "POST", .target = "/v1/auth/logout", .cookie = session.token};
    cr_expect_eq(fixture_call(&fixture, 1, &logout, &answer), 403, "without CSRF token");
    logout.csrf = session.csrf;
    cr_expect_eq(fixture_call(&fixture, 1, &logout, &answer), 204);
    cr_expect(http_answer_field(&answer, "Set-Cookie", value, sizeof value) && strstr(value, "__Host-session=;"));
    cr_expect_eq(show_session(&fixture, 0, session.token, &answer), 401);
    cr_expect_eq(show_session(&fixture, 1, session.token, &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_session");
    fixture_stop(&fixture);
}

/* The error without what differs by request. */
static void error_of(const struct http_answer *answer, char ret_error[256])
{
    char code[64], message[128];

    cr_assert(http_answer_json(answer, "error.code", code, sizeof code), "%s", answer->body);
    cr_assert(http_answer_json(answer, "error.message", message, sizeof message));
    snprintf(ret_error, 256, "%d %s %s", answer->status, code, message);
}

Test(login, wrong_password_wrong_code_and_unknown_email_answer_alike)
{
    char wrong_password[256], wrong_code[256], unknown[256], code[8];
    struct fixture_user user, nobody;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    nobody = user;
    snprintf(nobody.email, sizeof nobody.email, "eve@clinic.test");
    fixture_login(&fixture, 0, &user, "correct-Horse-battery-8", NULL, NULL, &answer);
    error_of(&answer, wrong_password);
    fixture_totp(&user, 0, code);
    code[5] = code[5] == '9' ? '0' : (char)(code[5] + 1);
    fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer);
    error_of(&answer, wrong_code);
    fixture_login(&fixture, 0, &nobody, FIXTURE_PASSWORD, NULL, NULL, &answer);
    error_of(&answer, unknown);
    cr_expect_eq(strncmp(wrong_password, "401 invalid_login ", 18), 0, "%s", wrong_password);
    cr_expect_str_eq(wrong_code, wrong_password);
    cr_expect_str_eq(unknown, wrong_password);
    fixture_stop(&fixture);
}

Test(login, the_email_is_compared_without_case_the_password_with)
{
    struct fixture_user user;
    struct http_answer answer;
    struct fixture fixture;
    char code[8];

    fixture_start(&fixture, 1, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_totp(&user, 0, code);
    cr_expect_eq(fixture_login(&fixture, 0, &user, "Correct-Horse-battery-9", code, NULL, &answer), 401);
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD " ", code, NULL, &answer), 401);
    snprintf(user.email, sizeof user.email, "ADA@Clinic.Test");
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer), 200);
    fixture_stop(&fixture);
}

struct parallel_login {
    struct fixture *fixture;
    const struct fixture_user *user;
    const char *code;
    size_t node;
    int status;
};

static void *log_in(void *arg)
{
    struct parallel_login *login = arg;
    struct http_answer *answer = malloc(sizeof *answer);

    if (answer)
        login->status =
            fixture_login(login->fixture, login->node, login->user, FIXTURE_PASSWORD, login->code, NULL, answer);
    free(answer);
    return NULL;
}

/* The limit of failures per email lets only some through to the code: exactly one of these may succeed. */
Test(login, twenty_parallel_logins_with_one_code_on_two_nodes_make_one_session)
{
    enum { LOGINS = 20 };
    struct parallel_login logins[LOGINS];
    pthread_t threads[LOGINS];
    struct fixture_user user;
    struct fixture fixture;
    unsigned accepted = 0;
    char code[8];

    fixture_start(&fixture, 2, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_totp(&user, 0, code);
    for (size_t i = 0; i < LOGINS; i++) {
        logins[i] = (struct parallel_login){&fixture, &user, code, i % 2, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, log_in, &logins[i]), 0);
    }
    for (size_t i = 0; i < LOGINS; i++) {
        pthread_join(threads[i], NULL);
        accepted += logins[i].status == 200;
        cr_expect(logins[i].status == 200 || logins[i].status == 401 || logins[i].status == 429 ||
                      logins[i].status == 503,
                  "%d", logins[i].status);
    }
    cr_expect_eq(accepted, 1, "%u logins with one code", accepted);
    fixture_stop(&fixture);
}

/* Unknown emails cost the same work as known ones: the bound must hold for them too. */
Test(login, more_attempts_than_the_queue_holds_are_refused_at_once)
{
    enum { LOGINS = 8 };
    static const char *const MORE[] = {"--password-parallel", "1", "--password-queue", "1", NULL};
    static const char TOTP_URI[] = "otpauth://totp/x?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
    struct parallel_login logins[LOGINS];
    struct fixture_user users[LOGINS] = {0};
    pthread_t threads[LOGINS];
    struct fixture fixture;
    unsigned overloaded = 0;

    setenv("CHATELAINE_TEST_PASSWORD_COST", "17", 1); /* the true one, so that the queue fills */
    fixture_start(&fixture, 1, MORE);
    for (size_t i = 0; i < LOGINS; i++) {
        snprintf(users[i].email, sizeof users[i].email, "nobody%zu@clinic.test", i);
        snprintf(users[i].totp_uri, sizeof users[i].totp_uri, "%s", TOTP_URI);
        logins[i] = (struct parallel_login){&fixture, &users[i], "000000", 0, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, log_in, &logins[i]), 0);
    }
    for (size_t i = 0; i < LOGINS; i++) {
        pthread_join(threads[i], NULL);
        overloaded += logins[i].status == 503;
        cr_expect(logins[i].status == 401 || logins[i].status == 503, "%d", logins[i].status);
    }
    cr_expect_gt(overloaded, 0);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_logins_total{result=\"overloaded\"}"), overloaded);
    cr_expect_lt(overloaded, LOGINS, "some are served");
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

Test(login, after_five_failures_an_email_must_wait_ever_longer)
{
    struct fixture_user user;
    struct http_answer answer;
    struct fixture fixture;
    int64_t asked_ms, passed_s;
    char value[32];
    long first, second;

    fixture_start(&fixture, 2, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(fixture_login(&fixture, i % 2, &user, "not-the-password", NULL, NULL, &answer), 401, "%zu: %s", i,
                     answer.body);
    asked_ms = deadline_now_ms();
    cr_assert_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 429,
                 "a correct one is throttled alike");
    cr_expect_str_eq(http_answer_code(&answer), "rate_limited");
    cr_assert(http_answer_field(&answer, "Retry-After", value, sizeof value));
    first = strtol(value, NULL, 10);
    cr_expect_gt(first, 0);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(fixture_login(&fixture, 1, &user, "not-the-password", NULL, NULL, &answer), 429);
    cr_assert(http_answer_field(&answer, "Retry-After", value, sizeof value));
    second = strtol(value, NULL, 10);
    passed_s = (deadline_now_ms() - asked_ms + 999) / 1000;
    cr_expect_geq(second, first - passed_s, "%ld, then %ld", first, second);
    fixture_stop(&fixture);
}

static void step_up(const struct fixture *fixture, size_t node, const struct fixture_session *session,
                    const char *password, const char *code, struct http_answer *ret_answer)
{
    char body[256];

    snprintf(body, sizeof body, "{\"password\":\"%s\",\"totp\":\"%s\"}", password, code);
    fixture_call(fixture, node,
                 &(struct http_call){.method = "POST",
                                     .target = "/v1/console/step_up",
                                     .cookie = session->token,
                                     .csrf = session->csrf,
                                     .json = body},
                 ret_answer);
}

static int create_in_console(const struct fixture *fixture, size_t node, const struct fixture_session *session,
                             struct http_answer *ret_answer)
{
    return fixture_call(fixture, node,
                        &(struct http_call){.method = "POST",
                                            .target = "/v1/console/api_keys",
                                            .cookie = session->token,
                                            .csrf = session->csrf,
                                            .json = "{\"name\":\"first\",\"mode\":\"live\"}"},
                        ret_answer);
}

Test(login, a_step_up_gives_a_new_token_and_the_old_one_is_dead)
{
    struct fixture_session session, stepped;
    struct http_answer answer;
    struct fixture_user user;
    struct fixture fixture;
    char value[512], code[8];

    fixture_start(&fixture, 2, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_add_session(&fixture, &user, false, &session);
    cr_expect_eq(create_in_console(&fixture, 0, &session, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "step_up_required");

    fixture_totp(&user, 0, code);
    step_up(&fixture, 0, &session, "not-the-password", code, &answer);
    cr_expect_eq(answer.status, 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_login");
    step_up(&fixture, 0, &session, FIXTURE_PASSWORD, code, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    cr_expect(http_answer_json(&answer, "step_up_expires_at", value, sizeof value) && value[10] == 'T');
    stepped = session;
    cr_assert(fixture_read_cookie(&answer, stepped.token));
    cr_expect_str_neq(stepped.token, session.token);

    cr_expect_eq(show_session(&fixture, 0, session.token, &answer), 401, "the old token");
    cr_expect_eq(show_session(&fixture, 1, session.token, &answer), 401, "the old token");
    cr_expect_eq(show_session(&fixture, 1, stepped.token, &answer), 200);
    cr_expect(http_answer_json(&answer, "csrf_token", value, sizeof value) && strcmp(value, session.csrf) == 0,
              "the CSRF token stays");
    cr_expect_eq(create_in_console(&fixture, 1, &stepped, &answer), 201);
    cr_assert(http_answer_json(&answer, "secret", value, sizeof value));
    cr_expect_eq(fixture_try_key(&fixture, 0, value), 200);

    step_up(&fixture, 1, &stepped, FIXTURE_PASSWORD, code, &answer);
    cr_expect_eq(answer.status, 401);
    cr_expect_str_eq(http_answer_code(&answer), "totp_already_used");
    cr_assert(http_answer_field(&answer, "Retry-After", value, sizeof value));
    long wait_s = strtol(value, NULL, 10);
    cr_expect(wait_s >= 1 && wait_s <= 30, "until the code that was used is over: %s", value);
    fixture_stop(&fixture);
}

Test(login, a_step_up_passes)
{
    enum { STEP_UP_MS = 5000 };
    static const char *const MORE[] = {"--step-up-ms", "5000", NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_session session;
    struct http_answer answer;
    struct fixture_user user;
    struct fixture fixture;
    int64_t began_ms;
    char code[8];

    fixture_start(&fixture, 1, MORE);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_add_session(&fixture, &user, false, &session);
    fixture_totp(&user, 0, code);
    began_ms = deadline_now_ms();
    step_up(&fixture, 0, &session, FIXTURE_PASSWORD, code, &answer);
    cr_assert_eq(answer.status, 200);
    cr_assert(fixture_read_cookie(&answer, session.token));
    cr_expect(create_in_console(&fixture, 0, &session, &answer) == 201 || deadline_now_ms() - began_ms >= STEP_UP_MS);
    while (create_in_console(&fixture, 0, &session, &answer) == 201 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_expect_eq(answer.status, 403);
    cr_expect_str_eq(http_answer_code(&answer), "step_up_required");
    cr_expect_eq(show_session(&fixture, 0, session.token, &answer), 200, "the session itself goes on");
    fixture_stop(&fixture);
}

Test(login, an_idle_session_ends_and_use_keeps_it_alive)
{
    static const char *const MORE[] = {"--session-idle-ms", "5000", NULL};
    struct fixture_session used, idle;
    struct deadline in_use;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    fixture_add_session(&fixture, NULL, false, &used);
    fixture_add_session(&fixture, NULL, false, &idle);
    cr_assert_eq(show_session(&fixture, 0, idle.token, &answer), 200);
    in_use = deadline_in(7000);
    while (deadline_left_ms(in_use) > 0) {
        cr_assert_eq(show_session(&fixture, 0, used.token, &answer), 200);
        poll(NULL, 0, 200);
    }
    cr_expect_eq(show_session(&fixture, 0, idle.token, &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_session");
    fixture_stop(&fixture);
}

Test(login, the_absolute_limit_ends_a_session_in_use)
{
    static const char *const MORE[] = {"--session-absolute-ms", "1500", NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_session session;
    struct http_answer answer;
    struct fixture_user user;
    struct fixture fixture;
    char code[8];

    fixture_start(&fixture, 1, MORE);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
    fixture_totp(&user, 0, code);
    cr_assert_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, &session, &answer), 200);
    while (show_session(&fixture, 0, session.token, &answer) == 200 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 100);
    cr_expect_eq(answer.status, 401);
    fixture_stop(&fixture);
}

static void expect_event(const struct http_answer *answer, int nth, const char *type, const char *actor,
                         const char *target)
{
    char path[32], value[64];

    snprintf(path, sizeof path, "data.%d.type", nth);
    cr_expect(http_answer_json(answer, path, value, sizeof value) && strcmp(value, type) == 0, "%d: %s, not %s", nth,
              value, type);
    snprintf(path, sizeof path, "data.%d.actor", nth);
    cr_expect(http_answer_json(answer, path, value, sizeof value) && strcmp(value, actor) == 0, "%d: %s, not %s", nth,
              value, actor);
    snprintf(path, sizeof path, "data.%d.target", nth);
    if (target)
        cr_expect(http_answer_json(answer, path, value, sizeof value) && strcmp(value, target) == 0, "%d: %s, not %s",
                  nth, value, target);
}

Test(login, the_audit_trail_tells_who_did_what)
{
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64], value[64];

    fixture_start(&fixture, 1, NULL);
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    snprintf(path, sizeof path, "/v1/console/api_keys/%s", key.id);
    fixture_call(&fixture, 0,
                 &(struct http_call){.method = "DELETE", .target = path, .cookie = session.token, .csrf = session.csrf},
                 &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    fixture_call(&fixture, 0,
                 &(struct http_call){.target = "/v1/console/audit_events?limit=2", .cookie = session.token}, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
    expect_event(&answer, 0, "api_key.revoked", fixture.user.id, key.id);
    expect_event(&answer, 1, "api_key.created", fixture.manager.id, key.id);
    cr_expect(http_answer_json(&answer, "data.0.ip", value, sizeof value) && strcmp(value, "127.0.0.1") == 0);
    cr_expect(http_answer_json(&answer, "data.0.request_id", value, sizeof value) && strncmp(value, "req_", 4) == 0);
    cr_expect(http_answer_json(&answer, "has_more", value, sizeof value) && strcmp(value, "true") == 0);
    fixture_stop(&fixture);
}

Test(login, usage_counts_live_apart_from_test_and_bills_live_alone)
{
    static const char *const MORE[] = {"--usage-flush-ms", "100", NULL};
    /* Not of one day: midnight may come between. */
    struct http_call show = {.target = "/v1/console/usage?group_by=mode"};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key test;

    fixture_start(&fixture, 1, MORE);
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &test);
    for (size_t i = 0; i < 7; i++)
        fixture_try_key(&fixture, 0, i < 3 ? test.secret : fixture.manager.secret);
    show.cookie = session.token;
    do {
        cr_assert_eq(fixture_call(&fixture, 0, &show, &answer), 200, "%s", answer.body);
        poll(NULL, 0, 50);
    } while (!strstr(answer.body, "\"requests\":4,\"billable\":4") && deadline_left_ms(deadline) > 0);
    cr_expect_not_null(strstr(answer.body, "\"mode\":\"live\",\"requests\":4,\"billable\":4"), "%s", answer.body);
    cr_expect_not_null(strstr(answer.body, "\"mode\":\"test\",\"requests\":3,\"billable\":0"), "%s", answer.body);
    fixture_stop(&fixture);
}
