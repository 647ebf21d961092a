/* What people do with their own account, at two nodes: passwords, authenticators, recovery codes, sessions, notices. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEW_PASSWORD "quite-Another-battery-7"
#define FIREFOX "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"

static struct fixture fixture;
static struct fixture_user user;

static void start(void)
{
    fixture_start(&fixture, 2, NULL);
    fixture_add_user(&fixture, "ada@clinic.test", &user);
}

static void stop(void)
{
    fixture_stop(&fixture);
    leak_guard();
}

TestSuite(my_account, .init = start, .fini = stop, .timeout = TEST_WITHIN_S);

/* As if the last code had been used long ago, so that each test need not wait for the next. */
static void forget_step(void)
{
    char name[96];

    snprintf(name, sizeof name, "%suser:%s", fixture_name(fixture.account, ""), user.id);
    redis_server_tell(&fixture.redis, "HDEL", name, "totp_step", NULL);
}

static void sign_in(size_t node, const char *password, struct fixture_session *ret_session)
{
    struct http_answer answer;

    forget_step();
    cr_assert_eq(fixture_login(&fixture, node, &user, password, NULL, ret_session, &answer), 200, "%s", answer.body);
}

static int show(size_t node, const struct fixture_session *session, struct http_answer *ret_answer)
{
    return fixture_call(&fixture, node, &(struct http_call){.target = "/v1/console/session", .cookie = session->token},
                        ret_answer);
}

static int status_of(size_t node, const struct fixture_session *session)
{
    struct http_answer answer;

    return show(node, session, &answer);
}

static int call(size_t node, const char *method, const char *target, const struct fixture_session *session,
                const char *json, struct http_answer *ret_answer)
{
    return fixture_call(&fixture, node,
                        &(struct http_call){.method = method,
                                            .target = target,
                                            .cookie = session ? session->token : NULL,
                                            .csrf = session ? session->csrf : NULL,
                                            .json = json},
                        ret_answer);
}

/* The user's code of now; wrong: another. */
static const char *code_now(bool wrong)
{
    static char code[8];

    fixture_totp(&user, 0, code);
    if (wrong)
        code[5] = code[5] == '9' ? '0' : (char)(code[5] + 1);
    return code;
}

static int change_password(size_t node, const struct fixture_session *session, const char *from, const char *to,
                           const char *code, struct http_answer *ret_answer)
{
    char json[512];

    snprintf(json, sizeof json, "{\"current_password\":\"%s\",\"totp\":\"%s\",\"new_password\":\"%s\"}", from, code,
             to);
    return call(node, "POST", "/v1/console/password", session, json, ret_answer);
}

static void expect_event(const char *type)
{
    char name[96], reply[4096], wanted[64];

    snprintf(name, sizeof name, "%sacct:%s:audit", fixture_name(fixture.account, ""), fixture.account);
    redis_server_ask(&fixture.redis, reply, sizeof reply, "XREVRANGE", name, "+", "-", "COUNT", "4", NULL);
    snprintf(wanted, sizeof wanted, "%s", type);
    cr_expect_not_null(strstr(reply, wanted), "no %s in %s", type, reply);
}

/* ASVS 6.2.2, 6.2.3 */
Test(my_account, a_new_password_ends_all_other_sessions_on_every_node)
{
    struct fixture_session mine, other, renewed;
    struct http_answer answer;

    sign_in(0, FIXTURE_PASSWORD, &mine);
    sign_in(1, FIXTURE_PASSWORD, &other);
    forget_step();
    cr_assert_eq(change_password(0, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(false), &answer), 200, "%s",
                 answer.body);
    cr_expect_eq(status_of(1, &other), 401);
    cr_expect_eq(status_of(1, &mine), 401, "the old token");
    renewed = mine;
    cr_assert(fixture_read_cookie(&answer, renewed.token));
    for (size_t node = 0; node < 2; node++)
        cr_expect_eq(status_of(node, &renewed), 200);
    expect_event("user.password_changed");
    forget_step();
    cr_expect_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 401);
    forget_step();
    cr_expect_eq(fixture_login(&fixture, 1, &user, NEW_PASSWORD, NULL, NULL, &answer), 200, "%s", answer.body);
}

Test(my_account, a_password_is_changed_only_by_who_knows_it)
{
    struct fixture_session mine, other;
    struct http_answer answer;
    char used[8];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    forget_step();
    snprintf(used, sizeof used, "%s", code_now(false)); /* once more, even if the clock has reached the next step */
    cr_assert_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, used, &other, &answer), 200, "%s", answer.body);
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, used, &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "totp_already_used");
    forget_step();
    cr_expect_eq(change_password(0, &mine, "not-My-old-password-1", NEW_PASSWORD, code_now(false), &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_login");
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(true), &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_login");
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, "chatelaine-2026", code_now(false), &answer), 400);
    cr_expect_not_null(strstr(answer.body, "too easy to guess"), "%s", answer.body);
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, FIXTURE_PASSWORD, code_now(false), &answer), 400);
    cr_expect_not_null(strstr(answer.body, "must not be the current one"), "%s", answer.body);
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, "short", code_now(false), &answer), 400);
    cr_expect_eq(status_of(1, &mine), 200);
    cr_expect_eq(status_of(0, &other), 200);
}

/* The same counters as a step-up: five failures of a session, whichever of them they were. */
Test(my_account, guesses_at_the_old_password_are_throttled_like_step_ups)
{
    struct fixture_session mine;
    struct http_answer answer;
    char json[256];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(change_password(i % 2, &mine, "not-My-old-password-1", NEW_PASSWORD, "123456", &answer), 401);
    snprintf(json, sizeof json, "{\"password\":\"wrong-too-1234\",\"totp\":\"123456\"}");
    cr_expect_eq(call(0, "POST", "/v1/console/step_up", &mine, json, &answer), 401);
    forget_step();
    cr_expect_eq(change_password(1, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(false), &answer), 429);
    cr_expect_eq(call(1, "POST", "/v1/console/totp", &mine, json, &answer), 429);
}

struct change {
    size_t node;
    const struct fixture_session *session;
    const char *to;
    char code[8];
    int status;
};

static void *make_change(void *arg)
{
    struct change *change = arg;
    struct http_answer *answer = malloc(sizeof *answer);

    if (answer)
        change->status =
            change_password(change->node, change->session, FIXTURE_PASSWORD, change->to, change->code, answer);
    free(answer);
    return NULL;
}

/* With different codes, so that only the old password decides. */
Test(my_account, of_two_changes_at_once_one_succeeds)
{
    struct fixture_session sessions[2];
    struct change changes[2];
    struct http_answer answer;
    pthread_t threads[2];

    for (size_t i = 0; i < 2; i++)
        sign_in(i, FIXTURE_PASSWORD, &sessions[i]);
    forget_step();
    for (size_t i = 0; i < 2; i++) {
        changes[i] = (struct change){i, &sessions[i], i ? NEW_PASSWORD : "a-Third-strange-word-5", "", 0};
        fixture_totp(&user, (int)i, changes[i].code);
    }
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, make_change, &changes[i]), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq((changes[0].status == 200) + (changes[1].status == 200), 1, "%d %d", changes[0].status,
                 changes[1].status);
    for (size_t i = 0; i < 2; i++) {
        forget_step();
        cr_expect_eq(fixture_login(&fixture, 0, &user, changes[i].to, NULL, NULL, &answer),
                     changes[i].status == 200 ? 200 : 401);
    }
}

/* ASVS 6.4.1: who signs in by a password that an operator chose can do nothing else before choosing one. */
Test(my_account, a_password_that_somebody_else_chose_must_be_changed_first)
{
    const char *const reset[] = {
        "user", "reset-password", "--email", user.email, "--password-file", fixture.password_path, NULL};
    struct fixture_session session;
    struct http_answer answer;
    char value[64];

    cr_assert_eq(fixture_run(&fixture, reset, NULL, NULL, NULL), 0);
    sign_in(0, FIXTURE_PASSWORD, &session);
    cr_assert_eq(show(1, &session, &answer), 200);
    cr_expect(http_answer_json(&answer, "password_change_required", value, sizeof value) && strcmp(value, "true") == 0);
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(call(node, "GET", "/v1/console/api_keys", &session, NULL, &answer), 403);
        cr_expect_str_eq(http_answer_code(&answer), "password_change_required");
        cr_expect_eq(
            call(node, "POST", "/v1/console/api_keys", &session, "{\"name\":\"x\",\"mode\":\"live\"}", &answer), 403);
        cr_expect_str_eq(http_answer_code(&answer), "password_change_required");
    }
    forget_step();
    cr_assert_eq(change_password(0, &session, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(false), &answer), 200);
    cr_assert(fixture_read_cookie(&answer, session.token));
    cr_expect_eq(call(1, "GET", "/v1/console/api_keys", &session, NULL, &answer), 200, "%s", answer.body);
}

static void step_up(struct fixture_session *session)
{
    struct http_answer answer;
    char json[256];

    forget_step();
    snprintf(json, sizeof json, "{\"password\":\"" FIXTURE_PASSWORD "\",\"totp\":\"%s\"}", code_now(false));
    cr_assert_eq(call(0, "POST", "/v1/console/step_up", session, json, &answer), 200);
    cr_assert(fixture_read_cookie(&answer, session->token));
}

/* ASVS 7.4.5, 7.5.2 */
Test(my_account, sessions_are_listed_and_ended_on_every_node)
{
    struct fixture_session here, there, elsewhere;
    struct http_answer answer;
    char id[64], value[64], target[128], body[256];

    sign_in(0, FIXTURE_PASSWORD, &there);
    sign_in(0, FIXTURE_PASSWORD, &elsewhere);
    forget_step();
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"" FIXTURE_PASSWORD "\",\"totp\":\"%s\"}", user.email,
             code_now(false));
    struct http_call login = {.method = "POST", .target = "/v1/auth/login", .json = body, .fields = FIREFOX};
    cr_assert_eq(fixture_call(&fixture, 1, &login, &answer), 200);
    cr_assert(fixture_read_cookie(&answer, here.token));
    cr_assert(http_answer_json(&answer, "csrf_token", here.csrf, sizeof here.csrf));

    cr_assert_eq(call(1, "GET", "/v1/console/sessions", &here, NULL, &answer), 200);
    cr_assert_eq(http_answer_json_count(&answer, "data"), 3, "%s", answer.body);
    for (int i = 0; i < 3; i++) {
        char path[32];

        snprintf(path, sizeof path, "data.%d.current", i);
        cr_assert(http_answer_json(&answer, path, value, sizeof value));
        snprintf(path, sizeof path, "data.%d.browser", i);
        bool is_current = strcmp(value, "true") == 0;
        cr_assert(http_answer_json(&answer, path, value, sizeof value));
        cr_expect_str_eq(value, is_current ? "Firefox on Linux" : "Unknown browser");
        snprintf(path, sizeof path, "data.%d.ip", i);
        cr_assert(http_answer_json(&answer, path, value, sizeof value));
        cr_expect_str_eq(value, "127.0.0.1");
        snprintf(path, sizeof path, "data.%d.id", i);
        if (!is_current)
            cr_assert(http_answer_json(&answer, path, id, sizeof id));
    }
    snprintf(target, sizeof target, "/v1/console/sessions/%s", id);
    cr_expect_eq(call(0, "DELETE", target, &here, NULL, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "step_up_required");
    cr_expect_eq(call(0, "DELETE", "/v1/console/sessions", &here, NULL, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "step_up_required");
    cr_expect_eq(status_of(1, &there), 200);
    cr_expect_eq(status_of(1, &elsewhere), 200);
    step_up(&here);
    cr_expect_eq(call(0, "DELETE", target, &here, NULL, &answer), 204);
    cr_expect_eq((status_of(1, &there) == 401) + (status_of(1, &elsewhere) == 401), 1);
    cr_expect_eq(call(1, "DELETE", target, &here, NULL, &answer), 404);
    cr_expect_str_eq(http_answer_code(&answer), "session_not_found");
    cr_expect_eq(call(0, "DELETE", "/v1/console/sessions", &here, NULL, &answer), 200);
    cr_expect(http_answer_json(&answer, "sessions_ended", value, sizeof value) && strcmp(value, "1") == 0);
    cr_expect_eq(status_of(1, &there), 401);
    cr_expect_eq(status_of(0, &elsewhere), 401);
    cr_expect_eq(status_of(0, &here), 200);
}

/* Nobody ends the sessions of others. */
Test(my_account, a_session_of_another_user_is_not_found)
{
    struct fixture_session mine, theirs;
    struct http_answer answer;
    char id[64], target[128];

    fixture_add_session(&fixture, NULL, false, &theirs);
    sign_in(0, FIXTURE_PASSWORD, &mine);
    cr_assert_eq(call(0, "GET", "/v1/console/sessions", &theirs, NULL, &answer), 200);
    cr_assert(http_answer_json(&answer, "data.0.id", id, sizeof id));
    snprintf(target, sizeof target, "/v1/console/sessions/%s", id);
    step_up(&mine);
    cr_expect_eq(call(0, "DELETE", target, &mine, NULL, &answer), 404);
    cr_expect_eq(call(0, "DELETE", "/v1/console/sessions/sess_", &mine, NULL, &answer), 404);
    cr_expect_eq(call(0, "DELETE", "/v1/console/sessions/x", &mine, NULL, &answer), 404);
    cr_expect_eq(status_of(1, &theirs), 200);
}

/* ASVS 7.2.4 */
Test(my_account, a_sign_in_ends_the_session_that_it_came_with)
{
    struct fixture_session before;
    struct http_answer answer;
    char body[256];

    sign_in(0, FIXTURE_PASSWORD, &before);
    forget_step();
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"" FIXTURE_PASSWORD "\",\"totp\":\"%s\"}", user.email,
             code_now(false));
    cr_assert_eq(call(1, "POST", "/v1/auth/login", &before, body, &answer), 200);
    cr_expect_eq(status_of(0, &before), 401);
}

/* Authenticators and recovery codes */

static void expect_uri(const struct http_answer *answer, struct fixture_user *person)
{
    cr_assert(http_answer_json(answer, "totp_uri", person->totp_uri, sizeof person->totp_uri), "%s", answer->body);
    cr_expect(strstr(answer->body, "\"totp_qr\":[\"1111111"), "%s", answer->body);
}

static int confirm(size_t node, const struct fixture_session *session, const char *ticket, const char *code)
{
    struct http_answer answer;
    char json[256];

    snprintf(json, sizeof json, ticket ? "{\"totp\":\"%s\",\"ticket\":\"%s\"}" : "{\"totp\":\"%s\"}", code, ticket);
    return call(node, "POST", ticket ? "/v1/auth/recover/confirm" : "/v1/console/totp/confirm", session, json, &answer);
}

static int begin_totp(size_t node, const struct fixture_session *session, struct http_answer *ret_answer)
{
    char json[256];

    forget_step();
    snprintf(json, sizeof json, "{\"password\":\"" FIXTURE_PASSWORD "\",\"totp\":\"%s\"}", code_now(false));
    return call(node, "POST", "/v1/console/totp", session, json, ret_answer);
}

Test(my_account, a_new_authenticator_replaces_the_old_one_when_it_is_confirmed)
{
    struct fixture_session mine, other;
    struct fixture_user older = user;
    struct http_answer answer;
    char code[8];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    sign_in(1, FIXTURE_PASSWORD, &other);
    cr_assert_eq(begin_totp(0, &mine, &answer), 200, "%s", answer.body);
    expect_uri(&answer, &user);
    cr_expect_eq(confirm(1, &mine, NULL, code_now(true)), 400);
    cr_expect_eq(confirm(1, &other, NULL, code_now(false)), 404, "another session");
    cr_expect_eq(status_of(1, &other), 200, "until it is confirmed");
    snprintf(code, sizeof code, "%s", code_now(false));
    cr_assert_eq(confirm(1, &mine, NULL, code), 204);
    cr_expect_eq(status_of(0, &other), 401);
    cr_expect_eq(status_of(0, &mine), 200);
    expect_event("user.totp_changed");
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer), 401, "its step was taken");
    forget_step();
    cr_expect_eq(fixture_login(&fixture, 1, &older, FIXTURE_PASSWORD, NULL, NULL, &answer), 401, "the old one");
    fixture_totp(&user, 1, code);
    cr_expect_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, code, NULL, &answer), 200, "%s", answer.body);
}

/* A password change ends what was begun with the old one. */
Test(my_account, an_authenticator_that_waits_ends_with_the_password)
{
    struct fixture_session mine;
    struct http_answer answer;
    struct fixture_user renewed = user;
    char code[8];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    cr_assert_eq(begin_totp(0, &mine, &answer), 200);
    expect_uri(&answer, &renewed);
    forget_step();
    cr_assert_eq(change_password(1, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(false), &answer), 200, "%s",
                 answer.body);
    cr_assert(fixture_read_cookie(&answer, mine.token));
    fixture_totp(&renewed, 0, code);
    cr_expect_eq(confirm(0, &mine, NULL, code), 404);
}

/* The first of ten codes. The session has no step-up: it gets one. */
static void make_codes(struct fixture_session *session, char ret_code[32])
{
    struct http_answer answer;

    step_up(session);
    cr_assert_eq(call(1, "POST", "/v1/console/recovery_codes", session, NULL, &answer), 201, "%s", answer.body);
    cr_assert_eq(http_answer_json_count(&answer, "recovery_codes"), 10);
    cr_assert(http_answer_json(&answer, "recovery_codes.0", ret_code, 32));
    expect_event("user.recovery_codes_made");
}

static int recover(size_t node, const char *password, const char *code, struct http_answer *ret_answer)
{
    char json[256];

    snprintf(json, sizeof json, "{\"email\":\"%s\",\"password\":\"%s\",\"recovery_code\":\"%s\"}", user.email, password,
             code);
    return call(node, "POST", "/v1/auth/recover", NULL, json, ret_answer);
}

static long codes_left(const struct fixture_session *session)
{
    struct http_answer answer;
    char value[16];

    cr_assert_eq(call(0, "GET", "/v1/console/recovery_codes", session, NULL, &answer), 200);
    cr_assert(http_answer_json(&answer, "remaining", value, sizeof value));
    return strtol(value, NULL, 10);
}

Test(my_account, one_recovery_code_at_two_nodes_enrols_one_authenticator)
{
    struct fixture_session mine;
    struct fixture_user enrolled[2] = {user, user};
    struct http_answer answer;
    char code[32], tickets[2][64], totp[8], value[64];
    int statuses[2];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    make_codes(&mine, code);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(recover(i, FIXTURE_PASSWORD, code, &answer), 200, "%s", answer.body);
        expect_uri(&answer, &enrolled[i]);
        cr_assert(http_answer_json(&answer, "ticket", tickets[i], sizeof tickets[i]));
    }
    cr_expect_eq(status_of(1, &mine), 200, "nothing has happened yet");
    cr_expect_eq(codes_left(&mine), 10, "a lost answer costs no code");
    for (size_t i = 0; i < 2; i++) {
        fixture_totp(&enrolled[i], 0, totp);
        statuses[i] = confirm(1 - i, NULL, tickets[i], totp);
    }
    cr_expect(statuses[0] == 404 && statuses[1] == 204, "%d %d", statuses[0], statuses[1]);
    for (size_t node = 0; node < 2; node++)
        cr_expect_eq(status_of(node, &mine), 401, "all sessions end");
    expect_event("user.recovery_used");
    cr_expect_eq(confirm(0, NULL, tickets[1], totp), 404, "again");
    cr_expect_eq(recover(0, FIXTURE_PASSWORD, code, &answer), 401, "the code was spent");
    user = enrolled[1];
    sign_in(0, FIXTURE_PASSWORD, &mine);
    cr_expect_eq(codes_left(&mine), 9);
    cr_assert_eq(show(1, &mine, &answer), 200);
    cr_expect(http_answer_json(&answer, "notices.recovery_used_at", value, sizeof value) && value[10] == 'T', "%s",
              answer.body);
}

struct confirmation {
    size_t node;
    const char *ticket;
    char totp[8];
    int status;
};

static void *make_confirmation(void *arg)
{
    struct confirmation *c = arg;

    c->status = confirm(c->node, NULL, c->ticket, c->totp);
    return NULL;
}

Test(my_account, one_ticket_at_two_nodes_at_once_counts_once)
{
    struct fixture_session mine;
    struct http_answer answer;
    struct confirmation both[2];
    pthread_t threads[2];
    char code[32], ticket[64];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    make_codes(&mine, code);
    cr_assert_eq(recover(0, FIXTURE_PASSWORD, code, &answer), 200);
    expect_uri(&answer, &user);
    cr_assert(http_answer_json(&answer, "ticket", ticket, sizeof ticket));
    for (size_t i = 0; i < 2; i++) {
        both[i] = (struct confirmation){.node = i, .ticket = ticket};
        fixture_totp(&user, 0, both[i].totp);
        cr_assert_eq(pthread_create(&threads[i], NULL, make_confirmation, &both[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq((both[0].status == 204) + (both[1].status == 204), 1, "%d %d", both[0].status, both[1].status);
    cr_expect_eq((both[0].status == 404) + (both[1].status == 404), 1);
}

struct recovery {
    size_t node;
    const char *code;
    pthread_barrier_t *begun; /* by both */
    int confirmed;
};

static void *make_recovery(void *arg)
{
    struct recovery *r = arg;
    struct fixture_user enrolled;
    struct http_answer answer;
    char ticket[64], totp[8];

    cr_expect_eq(recover(r->node, FIXTURE_PASSWORD, r->code, &answer), 200, "%s", answer.body);
    expect_uri(&answer, &enrolled);
    cr_assert(http_answer_json(&answer, "ticket", ticket, sizeof ticket));
    fixture_totp(&enrolled, 0, totp);
    pthread_barrier_wait(r->begun);
    r->confirmed = confirm(1 - r->node, NULL, ticket, totp);
    return NULL;
}

/* Whichever begins last replaces the other. */
Test(my_account, one_recovery_code_at_two_nodes_at_once_counts_once)
{
    struct fixture_session mine;
    struct recovery both[2];
    pthread_barrier_t begun;
    pthread_t threads[2];
    char code[32];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    make_codes(&mine, code);
    cr_assert_eq(pthread_barrier_init(&begun, NULL, 2), 0);
    for (size_t i = 0; i < 2; i++) {
        both[i] = (struct recovery){.node = i, .code = code, .begun = &begun};
        cr_assert_eq(pthread_create(&threads[i], NULL, make_recovery, &both[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begun);
    cr_expect_eq((both[0].confirmed == 204) + (both[1].confirmed == 204), 1, "%d %d", both[0].confirmed,
                 both[1].confirmed);
    cr_expect_eq((both[0].confirmed == 404) + (both[1].confirmed == 404), 1);
    cr_expect_eq(status_of(0, &mine), 401);
}

static void change_account(const char *what)
{
    const char *const argv[] = {"account", what, fixture.account, NULL};

    cr_assert_eq(fixture_run(&fixture, argv, NULL, NULL, NULL), 0, "%s", what);
}

/* As with a sign-in, the answer says so only if password and code are right. */
Test(my_account, a_suspended_account_begins_no_recovery)
{
    struct fixture_session mine;
    struct http_answer answer;
    char code[32], name[96], left[16], begun[16];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    make_codes(&mine, code);
    change_account("suspend");
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(recover(node, FIXTURE_PASSWORD, code, &answer), 403, "%s", answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "account_suspended");
    }
    cr_expect_eq(recover(0, "not-My-old-password-1", code, &answer), 401, "%s", answer.body);
    snprintf(name, sizeof name, "%suser:%s:new_totp", fixture_name(fixture.account, ""), user.id);
    redis_server_ask(&fixture.redis, begun, sizeof begun, "EXISTS", name, NULL);
    cr_expect_str_eq(begun, "0");
    snprintf(name, sizeof name, "%suser:%s:recovery_codes", fixture_name(fixture.account, ""), user.id);
    redis_server_ask(&fixture.redis, left, sizeof left, "SCARD", name, NULL);
    cr_expect_str_eq(left, "10");
    change_account("resume");
    cr_expect_eq(recover(1, FIXTURE_PASSWORD, code, &answer), 200, "%s", answer.body);
}

/* Unknown email, wrong password and wrong code: one answer, and the counters of sign-ins. */
Test(my_account, recoveries_are_answered_and_throttled_like_sign_ins)
{
    static const char WRONG[] = "0000-0000-0000-0000";
    struct fixture_user known = user;
    struct fixture_session mine;
    struct http_answer answer;
    char code[32], bodies[3][64];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    make_codes(&mine, code);
    snprintf(user.email, sizeof user.email, "nobody@clinic.test");
    cr_expect_eq(recover(0, FIXTURE_PASSWORD, code, &answer), 401);
    cr_assert(http_answer_json(&answer, "error.message", bodies[0], sizeof bodies[0]));
    user = known;
    cr_expect_eq(recover(1, "not-My-old-password-1", code, &answer), 401);
    cr_assert(http_answer_json(&answer, "error.message", bodies[1], sizeof bodies[1]));
    cr_expect_eq(recover(0, FIXTURE_PASSWORD, WRONG, &answer), 401);
    cr_assert(http_answer_json(&answer, "error.message", bodies[2], sizeof bodies[2]));
    cr_expect_str_eq(bodies[0], bodies[1]);
    cr_expect_str_eq(bodies[1], bodies[2]);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(recover(i % 2, FIXTURE_PASSWORD, WRONG, &answer), 401);
    cr_expect_eq(recover(0, FIXTURE_PASSWORD, code, &answer), 429, "after five, the right one too");
    forget_step();
    cr_expect_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 429, "and a sign-in");
    cr_expect_eq(codes_left(&mine), 10);
}

/* A key may be checked before the node's other connections are up again. */
static void restart_redis(void)
{
    redis_server_restart(&fixture.redis);
    for (size_t node = 0; node < 2; node++)
        fixture_await_all_ready(&fixture, node);
}

Test(my_account, without_redis_nothing_changes)
{
    struct fixture_session mine, other;
    struct http_answer answer;
    struct fixture_user renewed = user;
    char code[8];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    sign_in(1, FIXTURE_PASSWORD, &other);
    cr_assert_eq(begin_totp(0, &mine, &answer), 200);
    expect_uri(&answer, &renewed);
    step_up(&mine);
    forget_step();
    redis_server_kill(&fixture.redis);
    cr_expect_eq(change_password(0, &mine, FIXTURE_PASSWORD, NEW_PASSWORD, code_now(false), &answer), 503);
    fixture_totp(&renewed, 0, code);
    cr_expect_eq(confirm(0, &mine, NULL, code), 503);
    cr_expect_eq(recover(0, FIXTURE_PASSWORD, "0000-0000-0000-0000", &answer), 503);
    cr_expect_eq(call(0, "DELETE", "/v1/console/sessions", &mine, NULL, &answer), 503);
    cr_expect_eq(call(0, "GET", "/v1/console/sessions", &mine, NULL, &answer), 503);
    restart_redis();
    cr_expect_eq(status_of(1, &mine), 200);
    cr_expect_eq(status_of(0, &other), 200);
    fixture_totp(&renewed, 0, code);
    cr_expect_eq(confirm(1, &mine, NULL, code), 204, "it still waits");
    cr_expect_eq(status_of(0, &other), 401);
}

/* Redis dies while the passwords are hashed. Whenever that is, the change is made whole or not at all. */
Test(my_account, a_redis_that_dies_in_the_middle_leaves_nothing_half)
{
    struct fixture_session mine, other;
    struct http_answer answer;
    struct change change;
    pthread_t thread;

    sign_in(0, FIXTURE_PASSWORD, &mine);
    sign_in(1, FIXTURE_PASSWORD, &other);
    forget_step();
    change = (struct change){0, &mine, NEW_PASSWORD, "", 0};
    fixture_totp(&user, 0, change.code);
    cr_assert_eq(pthread_create(&thread, NULL, make_change, &change), 0);
    fixture_await_read(&fixture, 0);
    redis_server_kill(&fixture.redis);
    pthread_join(thread, NULL);
    restart_redis();
    cr_expect(change.status == 200 || change.status == 503, "%d", change.status);
    forget_step();
    bool is_changed = fixture_login(&fixture, 1, &user, NEW_PASSWORD, NULL, NULL, &answer) == 200;
    cr_expect(is_changed || change.status == 503, "answered, and lost");
    forget_step();
    cr_expect_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), is_changed ? 401 : 200);
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(status_of(node, &other), is_changed ? 401 : 200);
        cr_expect_eq(status_of(node, &mine), is_changed ? 401 : 200);
    }
}

/* What happened meanwhile is told at the sign-in and while the session lasts. */
Test(my_account, failed_sign_ins_are_noticed)
{
    struct fixture_session mine;
    struct http_answer answer;
    char value[64];

    sign_in(0, FIXTURE_PASSWORD, &mine);
    forget_step();
    for (size_t i = 0; i < 2; i++)
        fixture_login(&fixture, i, &user, "not-My-old-password-1", NULL, NULL, &answer);
    cr_assert_eq(show(1, &mine, &answer), 200);
    cr_expect(http_answer_json(&answer, "notices.failed_sign_ins", value, sizeof value) && strcmp(value, "2") == 0);
    forget_step();
    cr_assert_eq(fixture_login(&fixture, 1, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 200);
    cr_expect(http_answer_json(&answer, "notices.failed_sign_ins", value, sizeof value) && strcmp(value, "2") == 0);
    cr_expect(http_answer_json(&answer, "notices.last_sign_in_ip", value, sizeof value) &&
              strcmp(value, "127.0.0.1") == 0);
    expect_event("browser.new");
    cr_assert_eq(show(0, &mine, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "notices.new_browsers"), 1, "%s", answer.body);
}
