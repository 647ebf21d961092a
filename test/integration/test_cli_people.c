/* The commands about people, beside nodes that serve. */
#include "core/bucket.h"
#include "leak_guard.h"
#include "people.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cli_people, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* args: up to a NULL. Stops the test unless the exit code is the wanted one. The caller frees what was printed. */
static char *run(struct people *people, int wanted, const char *const *args)
{
    char *out, *err;
    int code = fixture_run(&people->fixture, args, NULL, &out, &err);

    cr_assert_eq(code, wanted, "%s %s: %d, %s%s", args[0], args[1], code, out, err);
    if (wanted == 0) {
        free(err);
        return out;
    }
    free(out);
    return err;
}

#define RUN(people, wanted, ...) run(people, wanted, (const char *const[]){__VA_ARGS__, NULL})

static void expect_said(char *said, const char *part)
{
    cr_expect_not_null(strstr(said, part), "'%s' is not in: %s", part, said);
    free(said);
}

static void read_code(char *said, char ret_code[FIXTURE_TOKEN_BYTES])
{
    const char *at = strstr(said, NODE_ORIGIN "/console/join#");

    cr_assert(at, "%s", said);
    snprintf(ret_code, FIXTURE_TOKEN_BYTES, "%.43s", at + strlen(NODE_ORIGIN "/console/join#"));
    free(said);
}

/* Links of the node and of the command alike. */
Test(cli_people, codes_of_links_lie_in_the_bucket_of_their_account)
{
    char bucket[3], found[16] = "";
    struct fixture_user one, other;
    struct fixture_session session;
    struct http_answer answer;
    struct people people;
    struct id account;

    people_start(&people, 1, NULL);
    cr_assert(id_parse(ID_ACCOUNT, text_of(people.fixture.account), &account));
    people_add(&people, "one@clinic.test", ROLE_OWNER, &one, &session);
    people_add(&people, "other@clinic.test", ROLE_OWNER, &other, &session);
    people_invite(&people, "new@clinic.test", "developer", (char[FIXTURE_TOKEN_BYTES]){0});
    cr_assert_eq(people_change(&people, 0, &one, "POST", "/reset", NULL, &answer), 200, "%s", answer.body);
    free(RUN(&people, 0, "user", "invite", "--account", account.text, "--email", "newer@clinic.test", "--public-origin",
             NODE_ORIGIN));
    free(RUN(&people, 0, "user", "reset", "--email", "other@clinic.test", "--yes", "--public-origin", NODE_ORIGIN));
    snprintf(bucket, sizeof bucket, "%02x", bucket_of_account(&account));
    redis_server_ask(&people.fixture.redis, found, sizeof found, "EVAL",
                     "local links, inside = redis.call('KEYS', KEYS[1] .. 'link:*'), 0 "
                     "for _, name in ipairs(links) do inside = inside + (name:sub(-2) == ARGV[1] and 1 or 0) end "
                     "return inside .. ' of ' .. #links",
                     "1", fixture_name(account.text, ""), bucket, NULL);
    cr_expect_str_eq(found, "4 of 4");
    people_stop(&people);
}

Test(cli_people, from_the_invitation_to_the_removal)
{
    char code[FIXTURE_TOKEN_BYTES], name[64];
    struct fixture_session session = {0};
    struct fixture_user user;
    struct fixture_key key;
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    const char *email = "new@clinic.test", *account = people.fixture.account;
    read_code(RUN(&people, 0, "user", "invite", "--account", account, "--email", email, "--role", "developer",
                  "--public-origin", NODE_ORIGIN),
              code);
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200, "%s", answer.body);
    cr_assert_eq(people_join(&people, 0, code, &user, "seven-Odd-lanterns-drift", &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "user.id", user.id, sizeof user.id));
    /* The fixture counts its codes from far below the present. */
    snprintf(name, sizeof name, "%suser:%s", fixture_name(people.fixture.account, ""), user.id);
    redis_server_tell(&people.fixture.redis, "HDEL", name, "totp_step", NULL);
    fixture_add_session(&people.fixture, &user, true, &session);
    people_make_key(&people, &session, "live", &key);
    expect_said(RUN(&people, 0, "user", "show", "--email", email), "developer");
    expect_said(RUN(&people, 0, "user", "role", "--email", email, "--role", "auditor", "--json"),
                "\"role\":\"auditor\"");
    expect_said(RUN(&people, 0, "user", "role", "--email", email, "--role", "auditor"), key.id);
    expect_said(RUN(&people, 1, "user", "remove", "--email", people.fixture.user.email, "--yes"), "owner");
    expect_said(RUN(&people, 2, "user", "disable", "--email", email), "--yes");
    cr_expect_eq(fixture_try_key(&people.fixture, 0, key.secret), 200);
    expect_said(RUN(&people, 0, "user", "disable", "--email", email, "--yes"), key.id);
    cr_expect_eq(people_ask(&people, 0, &session, "GET", "/v1/console/session", NULL, &answer), 401);
    cr_expect_eq(fixture_try_key(&people.fixture, 0, key.secret), 200, "kept, and named");
    expect_said(RUN(&people, 0, "user", "enable", "--email", email), "again");
    read_code(RUN(&people, 0, "user", "reset", "--email", email, "--yes", "--json", "--public-origin", NODE_ORIGIN),
              code);
    cr_expect_eq(people_begin(&people, 0, code, &user, &answer), 200, "%s", answer.body);
    expect_said(RUN(&people, 0, "user", "show", "--email", email, "--json"), "\"status\":\"invited\"");
    expect_said(RUN(&people, 0, "user", "remove", "--email", email, "--revoke-made-keys", "--yes"), key.id);
    cr_expect_eq(fixture_try_key(&people.fixture, 0, key.secret), 401);
    cr_expect_eq(people_begin(&people, 0, code, &user, &answer), 404);
    expect_said(RUN(&people, 1, "user", "show", "--email", email), "No user");
    people_stop(&people);
}

/* Nobody but the user ever knows the password. */
Test(cli_people, a_new_user_gets_a_link)
{
    char code[FIXTURE_TOKEN_BYTES];
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    const char *email = "ada@clinic.test", *account = people.fixture.account;
    read_code(RUN(&people, 0, "user", "create", "--account", account, "--email", email, "--public-origin", NODE_ORIGIN),
              code);
    expect_said(RUN(&people, 0, "user", "list", "--account", account, "--json"),
                "\"email\":\"ada@clinic.test\",\"role\":\"owner\",\"status\":\"invited\"");
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200, "%s", answer.body);
    cr_assert_eq(people_join(&people, 0, code, &user, "seven-Odd-lanterns-drift", &answer), 200, "%s", answer.body);
    expect_said(RUN(&people, 0, "user", "show", "--email", email, "--json"),
                "\"role\":\"owner\",\"status\":\"active\"");
    expect_said(
        RUN(&people, 1, "user", "create", "--account", account, "--email", email, "--public-origin", NODE_ORIGIN),
        "exists already");
    setenv("CHATELAINE_PUBLIC_ORIGIN", NODE_ORIGIN, 1); /* as on the nodes */
    read_code(RUN(&people, 0, "user", "create", "--account", account, "--email", "b@clinic.test", "--role", "auditor",
                  "--json"),
              code);
    unsetenv("CHATELAINE_PUBLIC_ORIGIN");
    cr_assert_eq(people_begin(&people, 0, code, &user, &answer), 200);
    cr_expect_not_null(strstr(answer.body, "\"auditor\""), "%s", answer.body);
    people_stop(&people);
}

/* What the operator knows is no secret of the user's. */
Test(cli_people, a_password_from_a_file_must_be_changed)
{
    struct fixture_session session;
    struct fixture_user user = {.email = "ada@clinic.test"};
    struct http_answer answer;
    struct people people;
    char *said, *at;

    people_start(&people, 1, NULL);
    said = RUN(&people, 0, "user", "create", "--account", people.fixture.account, "--email", user.email,
               "--password-file", people.fixture.password_path, "--json");
    at = strstr(said, "otpauth://");
    cr_assert(at, "%s", said);
    snprintf(user.totp_uri, sizeof user.totp_uri, "%.*s", (int)strcspn(at, "\""), at);
    free(said);
    cr_assert_eq(fixture_login(&people.fixture, 0, &user, FIXTURE_PASSWORD, NULL, &session, &answer), 200, "%s",
                 answer.body);
    cr_expect_eq(people_ask(&people, 0, &session, "GET", "/v1/console/users", NULL, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "password_change_required");

    fixture_add_user(&people.fixture, "robot@clinic.test", &user); /* --permanent-password */
    cr_assert_eq(fixture_login(&people.fixture, 0, &user, FIXTURE_PASSWORD, NULL, &session, &answer), 200);
    cr_expect_eq(people_ask(&people, 0, &session, "GET", "/v1/console/users", NULL, &answer), 200, "%s", answer.body);
    people_stop(&people);
}

static void expect_row(const char *list, const char *email, const char *role, const char *status)
{
    char row[128];

    snprintf(row, sizeof row, "  %-9s  %-8s  %s\n", role, status, email);
    cr_expect_not_null(strstr(list, row), "'%s' is not in: %s", row, list);
}

Test(cli_people, the_list_has_everybody_with_role_and_status)
{
    enum { MANY = 205 }; /* more than two pages */
    char name[64], email[40], *list;
    struct fixture_session session;
    struct fixture_user user;
    struct people people;
    size_t rows = 0;

    people_start(&people, 0, NULL);
    const char *account = people.fixture.account;
    fixture_open_store(&people.fixture);
    for (int i = 0; i < MANY; i++) {
        snprintf(email, sizeof email, "auditor%d@clinic.test", i);
        fixture_add_person(&people.fixture, NULL, email, ROLE_AUDITOR, &user);
    }
    fixture_close_store(&people.fixture);
    people_add(&people, "locked@clinic.test", ROLE_DEVELOPER, &user, &session);
    snprintf(name, sizeof name, "%suser:%s", fixture_name(people.fixture.account, ""), user.id);
    redis_server_tell(&people.fixture.redis, "HSET", name, "locked", "1", NULL);
    people_add(&people, "away@clinic.test", ROLE_RESPONDER, &user, &session);
    free(RUN(&people, 0, "user", "disable", "--email", "away@clinic.test", "--yes"));
    people_add(&people, "reset@clinic.test", ROLE_OWNER, &user, &session);
    free(RUN(&people, 0, "user", "reset", "--email", "reset@clinic.test", "--yes", "--public-origin", NODE_ORIGIN));
    free(RUN(&people, 0, "user", "invite", "--account", account, "--email", "new@clinic.test", "--public-origin",
             NODE_ORIGIN));

    list = RUN(&people, 0, "user", "list", "--account", account);
    for (const char *at = list; (at = strchr(at, '\n')); at++)
        rows++;
    cr_expect_eq(rows, MANY + 5, "%zu", rows);
    expect_row(list, people.fixture.user.email, "owner", "active");
    expect_row(list, "auditor0@clinic.test", "auditor", "active");
    expect_row(list, "auditor204@clinic.test", "auditor", "active");
    expect_row(list, "locked@clinic.test", "developer", "locked");
    expect_row(list, "away@clinic.test", "responder", "disabled");
    expect_row(list, "reset@clinic.test", "owner", "invited");
    expect_row(list, "new@clinic.test", "developer", "invited");
    free(list);
    people_stop(&people);
}

Test(cli_people, what_is_missing_or_wrong_is_told)
{
    struct people people;

    people_start(&people, 0, NULL);
    const char *account = people.fixture.account;
    expect_said(RUN(&people, 2, "user", "invite", "--email", "a@b.test", "--public-origin", NODE_ORIGIN), "--account");
    expect_said(RUN(&people, 2, "user", "invite", "--account", account, "--email", "a@b.test"), "--public-origin");
    expect_said(
        RUN(&people, 2, "user", "invite", "--account", account, "--email", "ab", "--public-origin", NODE_ORIGIN),
        "email");
    expect_said(RUN(&people, 2, "user", "create", "--account", account, "--email", "a@b.test"), "--public-origin");
    expect_said(RUN(&people, 2, "user", "create", "--account", account, "--email", "a@b.test", "--public-origin",
                    NODE_ORIGIN, "--permanent-password"),
                "--password-file");
    expect_said(RUN(&people, 2, "user", "role", "--email", "a@b.test", "--role", "king"), "--role");
    expect_said(RUN(&people, 1, "user", "role", "--email", "a@b.test", "--role", "owner"), "No user");
    expect_said(RUN(&people, 1, "user", "invite", "--account", "acct_00000000000000000000000000", "--email", "a@b.test",
                    "--public-origin", NODE_ORIGIN),
                "account");
    people_stop(&people);
}
