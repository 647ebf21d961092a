/* Invitations and resets: links that work once, for whom and what they were made. */
#include "base/clock.h"
#include "leak_guard.h"
#include "people.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(links, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define NEW_PASSWORD "seven-Odd-lanterns-drift"

static void expect_json(const struct http_answer *answer, const char *path, const char *wanted)
{
    char value[1024] = "";

    cr_expect(http_answer_json(answer, path, value, sizeof value) && strcmp(value, wanted) == 0, "%s: '%s', not '%s'",
              path, value, wanted);
}

/* Every way to find that a link is none is answered alike. */
static void expect_no_link(const struct people *people, size_t node, const char *code, const char *why)
{
    struct fixture_user user = {.totp_uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"};
    struct http_answer answer;

    cr_expect_eq(people_begin(people, node, code, &user, &answer), 404, "%s: %s", why, answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "link_not_found");
    cr_expect_eq(people_join(people, node, code, &user, NEW_PASSWORD, &answer), 404, "%s: %s", why, answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "link_not_found");
}

/* However it is written: invited, signed in, and not invited again. */
Test(links, one_address_is_one_person)
{
    static const char *const SPELLINGS[] = {"\u00e5sa@xn--mnchen-3ya.example", "A\u030aSA@M\u00dcNCHEN.EXAMPLE"};
    struct fixture_user user;
    struct fixture_session session;
    struct http_answer answer;
    char code[FIXTURE_TOKEN_BYTES], body[256], now[8];
    struct people people;

    people_start(&people, 1, NULL);
    people_invite(&people, "\u00c5sa@m\u00fcnchen.example", "responder", code);
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200, "%s", answer.body);
    expect_json(&answer, "email", "\u00e5sa@xn--mnchen-3ya.example");
    cr_assert_eq(people_join(&people, 0, code, &user, NEW_PASSWORD, &answer), 200, "%s", answer.body);
    snprintf(user.email, sizeof user.email, "%s", SPELLINGS[1]);
    fixture_totp(&user, 1, now);
    cr_expect_eq(fixture_login(&people.fixture, 0, &user, NEW_PASSWORD, now, &session, &answer), 200, "%s",
                 answer.body);
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof *SPELLINGS; i++) {
        snprintf(body, sizeof body, "{\"email\":\"%s\",\"role\":\"auditor\"}", SPELLINGS[i]);
        cr_expect_eq(people_ask(&people, 0, &people.owner, "POST", "/v1/console/invitations", body, &answer), 409, "%s",
                     answer.body);
    }
    cr_expect_eq(people_ask(&people, 0, &people.owner, "POST", "/v1/console/invitations",
                            "{\"email\":\"a\\u202eda@clinic.example\",\"role\":\"auditor\"}", &answer),
                 400);
    expect_json(&answer, "error.param", "email");
    cr_expect_not_null(strstr(answer.body, "U+202E"));
    people_stop(&people);
}

/* A user whom 0.3 made keeps the email as it was written then, which no new user may have. */
Test(links, an_address_that_0_3_kept_is_given_to_nobody_else)
{
    static const char KEPT[] = "\u00e5sa@m\u00fcnchen.example";
    const char *const create[] = {
        "user", "create", "--account", NULL, "--email", KEPT, "--public-origin", "https://console.example", NULL};
    const char *args[sizeof create / sizeof *create];
    struct fixture_user user;
    struct http_answer answer;
    struct people people;
    char body[256], *out, *err;

    people_start(&people, 1, NULL);
    fixture_add_person(&people.fixture, people.fixture.account, KEPT, ROLE_AUDITOR, &user);
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"role\":\"auditor\"}", KEPT);
    cr_expect_eq(people_ask(&people, 0, &people.owner, "POST", "/v1/console/invitations", body, &answer), 409, "%s",
                 answer.body);
    expect_json(&answer, "error.code", "user_exists");
    memcpy(args, create, sizeof create);
    args[3] = people.fixture.account;
    cr_expect_eq(fixture_run(&people.fixture, args, NULL, &out, &err), 1, "%s%s", out, err);
    free(out);
    free(err);
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"mode\":\"test\"}", KEPT);
    cr_expect_eq(fixture_call(&people.fixture, 0,
                              &(struct http_call){.method = "POST",
                                                  .target = "/v1/api_keys",
                                                  .bearer = people.fixture.manager.secret,
                                                  .json = body},
                              &answer),
                 400, "no key is called as a person: %s", answer.body);
    people_stop(&people);
}

Test(links, an_invitation_from_the_owner_to_the_session)
{
    struct fixture_user user;
    struct fixture_session session;
    struct http_answer answer;
    char code[FIXTURE_TOKEN_BYTES];
    struct people people;

    people_start(&people, 2, NULL);
    people_invite(&people, "New@Clinic.test ", "responder", code);
    cr_assert_eq(people_ask(&people, 1, &people.owner, "GET", "/v1/console/invitations", NULL, &answer), 200);
    expect_json(&answer, "data.0.email", "new@clinic.test");
    cr_expect_null(strstr(answer.body, code));
    cr_expect_null(strstr(answer.body, "url"));

    cr_assert_eq(people_begin(&people, 1, code, &user, &answer), 200, "%s", answer.body);
    expect_json(&answer, "email", "new@clinic.test");
    expect_json(&answer, "role", "responder");
    expect_json(&answer, "account_name", "North Clinic");
    /* A scanner of mails learns nothing and spoils nothing. */
    cr_assert_eq(people_open(&people, 0, code, "/v1/auth/join/begin", &answer), 200);
    cr_expect_null(strstr(answer.body, "totp"));
    expect_json(&answer, "opened.0.network", "127.0.0.1");
    expect_json(&answer, "opened.0.browser", "Unknown browser");

    cr_expect_eq(people_join(&people, 0, code, &user, "password1234", &answer), 400);
    expect_json(&answer, "error.param", "password");
    cr_assert_eq(people_join(&people, 0, code, &user, NEW_PASSWORD, &answer), 200, "%s", answer.body);
    expect_json(&answer, "user.role", "responder");
    cr_assert(fixture_read_cookie(&answer, session.token) &&
              http_answer_json(&answer, "csrf_token", session.csrf, sizeof session.csrf) &&
              http_answer_json(&answer, "user.id", user.id, sizeof user.id));
    cr_expect_eq(people_ask(&people, 1, &session, "GET", "/v1/console/session", NULL, &answer), 200);
    expect_no_link(&people, 1, code, "used");
    expect_no_link(&people, 1, "no-code", "malformed");
    cr_assert_eq(people_ask(&people, 0, &people.owner, "GET", "/v1/console/invitations", NULL, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 0);
    /* The code that joined signs nobody in again; the next one does. */
    char now[8];
    fixture_totp(&user, 1, now);
    cr_expect_eq(fixture_login(&people.fixture, 1, &user, NEW_PASSWORD, now, &session, &answer), 200, "%s",
                 answer.body);
    cr_assert_eq(people_ask(&people, 0, &session, "GET", "/v1/console/audit_events?limit=100", NULL, &answer), 200);
    cr_expect_not_null(strstr(answer.body, "\"type\":\"user.joined\""));
    cr_expect_not_null(strstr(answer.body, "\"type\":\"user.invited\""));
    cr_expect_not_null(strstr(answer.body, "\"type\":\"link.opened\""));
    cr_expect_not_null(strstr(answer.body, "\"same_address\":\"yes\""));
    people_stop(&people);
}

/* Whoever opened the link first kept a copy of the second factor. */
Test(links, only_the_browser_that_started_last_goes_on)
{
    struct fixture_user early, late, none;
    struct fixture_session session;
    struct http_answer answer;
    char code[FIXTURE_TOKEN_BYTES], now[8];
    struct people people;

    people_start(&people, 2, NULL);
    people_invite(&people, "new@clinic.test", "developer", code);
    cr_assert_eq(people_begin(&people, 0, code, &early, &answer), 200);
    cr_assert_eq(people_begin(&people, 1, code, &late, &answer), 200);
    cr_expect_str_neq(early.totp_uri, late.totp_uri);
    cr_expect_str_neq(early.join_cookie, late.join_cookie);
    none = late;
    none.join_cookie[0] = '\0';
    cr_expect_eq(people_join(&people, 0, code, &early, NEW_PASSWORD, &answer), 409, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "link_not_started");
    cr_expect_eq(people_join(&people, 1, code, &none, NEW_PASSWORD, &answer), 409, "a code, and no cookie");
    snprintf(early.join_cookie, sizeof early.join_cookie, "%s", late.join_cookie);
    cr_expect_eq(people_join(&people, 0, code, &early, NEW_PASSWORD, &answer), 401, "the earlier secret");
    cr_assert_eq(people_join(&people, 0, code, &late, NEW_PASSWORD, &answer), 200, "%s", answer.body);
    fixture_totp(&early, 1, now);
    cr_expect_eq(fixture_login(&people.fixture, 1, &early, NEW_PASSWORD, now, &session, &answer), 401);
    fixture_totp(&late, 1, now);
    cr_expect_eq(fixture_login(&people.fixture, 1, &late, NEW_PASSWORD, now, &session, &answer), 200);
    people_stop(&people);
}

Test(links, two_at_once_join_once)
{
    struct http_client clients[2];
    struct http_answer answer;
    struct fixture_user user;
    char code[FIXTURE_TOKEN_BYTES], body[512], totp[8], cookie[128];
    struct people people;
    int joined = 0;

    people_start(&people, 2, NULL);
    people_invite(&people, "new@clinic.test", "developer", code);
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200);
    fixture_totp(&user, 0, totp);
    snprintf(body, sizeof body, "{\"code\":\"%s\",\"password\":\"" NEW_PASSWORD "\",\"totp\":\"%s\"}", code, totp);
    people_print_cookie(&user, cookie, sizeof cookie);
    const struct http_call call = {.method = "POST", .target = "/v1/auth/join", .json = body, .fields = cookie};
    for (size_t i = 0; i < 2; i++) {
        http_client_connect(&clients[i], people.fixture.nodes[i].port);
        http_client_send_call(&clients[i], &call);
    }
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        joined += answer.status == 200;
        cr_expect(answer.status == 200 || answer.status == 404, "%s", answer.body);
        http_client_close(&clients[i]);
    }
    cr_expect_eq(joined, 1);
    cr_assert_eq(people_ask(&people, 0, &people.owner, "GET", "/v1/console/users", NULL, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
    people_stop(&people);
}

Test(links, an_invitation_ends_with_whatever_it_depends_on)
{
    static const char *const PATHS[] = {"/disable", "/role", ""};
    static const char *const BODIES[] = {"{}", "{\"role\":\"developer\"}", NULL};
    char code[FIXTURE_TOKEN_BYTES], second[FIXTURE_TOKEN_BYTES], target[96], id[ID_TEXT_BYTES];
    struct http_answer answer;
    struct fixture_user user;
    struct people people;

    people_start(&people, 1, NULL);
    /* Withdrawn, by an owner of this account alone. */
    people_invite(&people, "new@clinic.test", "developer", code);
    cr_assert_eq(people_ask(&people, 0, &people.owner, "GET", "/v1/console/invitations", NULL, &answer), 200);
    cr_assert(http_answer_json(&answer, "data.0.id", id, sizeof id));
    snprintf(target, sizeof target, "/v1/console/invitations/%s", id);
    cr_expect_eq(people_ask(&people, 0, &people.owner, "DELETE", target, NULL, &answer), 204);
    cr_expect_eq(people_ask(&people, 0, &people.owner, "DELETE", target, NULL, &answer), 404);
    expect_no_link(&people, 0, code, "withdrawn");
    /* Replaced. */
    people_invite(&people, "new@clinic.test", "developer", code);
    people_invite(&people, "new@clinic.test", "auditor", second);
    expect_no_link(&people, 0, code, "replaced");
    cr_expect_eq(people_begin(&people, 0, second, &user, &answer), 200);
    /* The owner who made it left, or is none any more. */
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        struct fixture_session session;
        struct fixture_user owner;
        char email[48];

        snprintf(email, sizeof email, "owner%zu@clinic.test", i);
        people_add(&people, email, ROLE_OWNER, &owner, &session);
        cr_assert_eq(people_ask(&people, 0, &session, "POST", "/v1/console/invitations",
                                "{\"email\":\"friend@clinic.test\",\"role\":\"owner\"}", &answer),
                     201, "%s", answer.body);
        people_read_link(&answer, code);
        cr_assert_eq(people_change(&people, 0, &owner, BODIES[i] ? "POST" : "DELETE", PATHS[i], BODIES[i], &answer),
                     200, "%s", answer.body);
        expect_no_link(&people, 0, code, PATHS[i]);
        if (i == 0)
            cr_assert_eq(people_change(&people, 0, &owner, "POST", "/enable", NULL, &answer), 200);
        expect_no_link(&people, 0, code, "enabled again");
    }
    people_stop(&people);
}

Test(links, the_email_is_taken_when_the_link_is_used)
{
    char code[FIXTURE_TOKEN_BYTES];
    struct fixture_session session;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    people_invite(&people, "new@clinic.test", "developer", code);
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200);
    people_add(&people, "new@clinic.test", ROLE_AUDITOR, &user, &session);
    cr_expect_eq(people_ask(&people, 0, &people.owner, "POST", "/v1/console/invitations",
                            "{\"email\":\"new@clinic.test\",\"role\":\"owner\"}", &answer),
                 409);
    cr_expect_str_eq(http_answer_code(&answer), "user_exists");
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200);
    cr_expect_eq(people_join(&people, 0, code, &user, NEW_PASSWORD, &answer), 404, "%s", answer.body);
    people_stop(&people);
}

/* Whoever writes to Redis makes no owner of an auditor, and prolongs nothing. */
Test(links, a_link_grants_what_was_sealed)
{
    static const struct {
        const char *field, *value;
    } CASES[] = {
        {"role", "owner"},
        {"email", "other@clinic.test"},
        {"expires", "9999999999999"},
        {"mac", ""},
    };
    char code[FIXTURE_TOKEN_BYTES], script[256];
    struct http_answer answer;
    struct fixture_user user;
    struct people people;

    people_start(&people, 1, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        people_invite(&people, "new@clinic.test", "auditor", code);
        cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200);
        snprintf(script, sizeof script,
                 "for _, k in ipairs(redis.call('KEYS', '*:link:*')) do redis.call('HSET', k, '%s', '%s') end",
                 CASES[i].field, CASES[i].value);
        redis_server_tell_all(&people.fixture.redis, "EVAL", script, "0", NULL);
        expect_no_link(&people, 0, code, CASES[i].field);
    }
    people_stop(&people);
}

Test(links, nobody_guesses_codes)
{
    char code[FIXTURE_TOKEN_BYTES], guess[FIXTURE_TOKEN_BYTES];
    struct http_answer answer;
    struct fixture_user user;
    struct people people;
    int wrong = 0;

    people_start(&people, 1, NULL);
    people_invite(&people, "new@clinic.test", "auditor", code);
    snprintf(guess, sizeof guess, "%s", code);
    guess[0] = code[0] == 'A' ? 'B' : 'A';
    while (people_begin(&people, 0, guess, &user, &answer) == 404)
        cr_assert_lt(++wrong, 100);
    cr_expect_eq(answer.status, 429, "%s", answer.body);
    cr_expect_eq(wrong, 30);
    cr_expect_eq(people_begin(&people, 0, code, &user, &answer), 200, "who has the code shares the address: %s",
                 answer.body);
    people_stop(&people);
}

Test(links, a_reset_ends_the_old_and_makes_the_new)
{
    char code[FIXTURE_TOKEN_BYTES], second[FIXTURE_TOKEN_BYTES], totp[8];
    struct fixture_user user, fresh;
    struct fixture_session session;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    fixture_add_user(&people.fixture, "ada@clinic.test", &user);
    fixture_totp(&user, 0, totp);
    cr_assert_eq(fixture_login(&people.fixture, 0, &user, FIXTURE_PASSWORD, totp, &session, &answer), 200);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/reset", NULL, &answer), 200, "%s", answer.body);
    expect_json(&answer, "sessions_ended", "1");
    people_read_link(&answer, code);
    cr_expect_eq(people_ask(&people, 1, &session, "GET", "/v1/console/session", NULL, &answer), 401);
    fixture_totp(&user, 1, totp);
    cr_expect_eq(fixture_login(&people.fixture, 1, &user, FIXTURE_PASSWORD, totp, NULL, &answer), 401);
    cr_assert_eq(people_change(&people, 1, &user, "GET", "", NULL, &answer), 200);
    expect_json(&answer, "status", "invited");

    cr_assert_eq(people_change(&people, 1, &user, "POST", "/reset", NULL, &answer), 200);
    people_read_link(&answer, second);
    expect_no_link(&people, 0, code, "replaced by a later reset");
    cr_assert_eq(people_begin(&people, 0, second, &fresh, &answer), 200, "%s", answer.body);
    cr_expect_str_neq(fresh.totp_uri, user.totp_uri);
    cr_assert_eq(people_join(&people, 1, second, &fresh, NEW_PASSWORD, &answer), 200, "%s", answer.body);
    expect_json(&answer, "user.id", user.id);
    expect_json(&answer, "user.role", "owner");
    expect_no_link(&people, 0, second, "used");

    /* Disabled with a reset under way. */
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/reset", NULL, &answer), 200);
    people_read_link(&answer, second);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/disable", "{}", &answer), 200);
    expect_no_link(&people, 1, second, "disabled");
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/enable", NULL, &answer), 200);
    expect_no_link(&people, 1, second, "enabled again");
    people_stop(&people);
}
