/* People: what an owner does to them, at one node, is in effect at every other before it is answered. */
#include "cli.h"
#include "leak_guard.h"
#include "people.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(people, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static int show_session(const struct people *people, size_t node, const struct fixture_session *session)
{
    struct http_answer answer;

    return people_ask(people, node, session, "GET", "/v1/console/session", NULL, &answer);
}

static void expect_json(const struct http_answer *answer, const char *path, const char *wanted)
{
    char value[1024] = "";

    cr_expect(http_answer_json(answer, path, value, sizeof value) && strcmp(value, wanted) == 0, "%s: '%s', not '%s'",
              path, value, wanted);
}

Test(people, are_listed_newest_first_to_every_role)
{
    struct fixture_session sessions[ROLE_COUNT], stranger;
    struct fixture_user users[ROLE_COUNT], elsewhere;
    char account[ID_TEXT_BYTES], target[96], email[32];
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    fixture_add_account(&people.fixture, account);
    fixture_add_person(&people.fixture, account, "far@south.test", ROLE_OWNER, &elsewhere);
    fixture_add_session(&people.fixture, &elsewhere, true, &stranger);
    for (enum role role = ROLE_AUDITOR; role < ROLE_COUNT; role++) {
        snprintf(email, sizeof email, "%s@clinic.test", role_text(role).ptr);
        people_add(&people, email, role, &users[role], &sessions[role]);
    }
    for (enum role role = ROLE_AUDITOR; role < ROLE_COUNT; role++) {
        cr_assert_eq(people_ask(&people, 0, &sessions[role], "GET", "/v1/console/users?limit=2", NULL, &answer), 200);
        cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
        expect_json(&answer, "data.0.id", users[ROLE_OWNER].id);
        expect_json(&answer, "data.0.role", "owner");
        expect_json(&answer, "data.0.status", "active");
        expect_json(&answer, "data.0.disabled_at", "null");
        expect_json(&answer, "data.1.email", "developer@clinic.test");
        expect_json(&answer, "has_more", "true");
        snprintf(target, sizeof target, "/v1/console/users?starting_after=%s", users[ROLE_DEVELOPER].id);
        cr_assert_eq(people_ask(&people, 0, &sessions[role], "GET", target, NULL, &answer), 200);
        cr_expect_eq(http_answer_json_count(&answer, "data"), 3);
        expect_json(&answer, "data.2.id", people.fixture.user.id);
        expect_json(&answer, "has_more", "false");
        snprintf(target, sizeof target, "/v1/console/users/%s", users[ROLE_AUDITOR].id);
        cr_expect_eq(people_ask(&people, 0, &sessions[role], "GET", target, NULL, &answer), 200);
        expect_json(&answer, "role", "auditor");
    }
    /* Another account sees only its own. */
    cr_expect_eq(people_ask(&people, 0, &stranger, "GET", target, NULL, &answer), 404);
    cr_expect_str_eq(http_answer_code(&answer), "user_not_found");
    cr_expect_eq(people_ask(&people, 0, &stranger, "GET", "/v1/console/users", NULL, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 1);
    people_stop(&people);
}

Test(people, a_role_counts_from_the_next_request_on)
{
    struct fixture_session session;
    struct fixture_key key;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;
    char target[96];

    people_start(&people, 2, NULL);
    people_add(&people, "dev@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &key);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/role", "{\"role\":\"responder\"}", &answer), 200, "%s",
                 answer.body);
    expect_json(&answer, "user.role", "responder");
    cr_expect_eq(
        people_ask(&people, 1, &session, "POST", "/v1/console/api_keys", "{\"name\":\"n\",\"mode\":\"test\"}", &answer),
        403);
    cr_expect_str_eq(http_answer_code(&answer), "role_not_permitted");
    cr_expect_eq(people_ask(&people, 1, &session, "GET", "/v1/console/session", NULL, &answer), 200);
    expect_json(&answer, "user.role", "responder");
    snprintf(target, sizeof target, "/v1/console/api_keys/%s", key.id);
    cr_expect_eq(people_ask(&people, 1, &session, "DELETE", target, NULL, &answer), 200, "responders revoke");
    cr_assert_eq(people_change(&people, 1, &user, "POST", "/role", "{\"role\":\"auditor\"}", &answer), 200);
    cr_expect_eq(people_ask(&people, 0, &session, "DELETE", target, NULL, &answer), 403, "auditors do not");
    /* What is in the trail. */
    cr_assert_eq(people_ask(&people, 0, &session, "GET", "/v1/console/audit_events?limit=1", NULL, &answer), 200);
    expect_json(&answer, "data.0.type", "user.role_changed");
    expect_json(&answer, "data.0.target", user.id);
    expect_json(&answer, "data.0.data.from", "responder");
    expect_json(&answer, "data.0.data.to", "auditor");
    cr_assert_eq(people_change(&people, 1, &user, "POST", "/role", "{\"role\":\"developer\"}", &answer), 200);
    people_make_key(&people, &session, "live", &key);
    people_stop(&people);
}

/* A node has seen the request's head and waits for its body when the role falls. */
static void create_while_the_role_falls(enum role from, const char *to, const char *body)
{
    struct fixture_session session;
    struct http_client client;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;
    char head[512], role[32];
    int len;

    people_start(&people, 2, NULL);
    people_add(&people, "dev@clinic.test", from, &user, &session);
    len = snprintf(head, sizeof head,
                   "POST /v1/console/api_keys HTTP/1.1\r\nHost: t\r\nCookie: __Host-session=%s\r\nX-CSRF-Token: %s\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\nExpect: 100-continue\r\n\r\n",
                   session.token, session.csrf, strlen(body));
    http_client_connect(&client, people.fixture.nodes[1].port);
    cr_assert(http_client_send(&client, head, (size_t)len));
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 100);
    snprintf(role, sizeof role, "{\"role\":\"%s\"}", to);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/role", role, &answer), 200);
    cr_assert(http_client_send(&client, body, strlen(body)));
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 403, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "role_not_permitted");
    http_client_close(&client);
    people_stop(&people);
}

Test(people, a_role_that_falls_while_a_body_comes_makes_no_key)
{
    create_while_the_role_falls(ROLE_DEVELOPER, "responder",
                                "{\"name\":\"late\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}");
}

/* What is left may make keys, but not this one. */
Test(people, a_role_that_falls_while_a_body_comes_makes_no_key_that_is_worth_more)
{
    create_while_the_role_falls(ROLE_OWNER, "developer", "{\"name\":\"late\",\"mode\":\"live\"}");
}

Test(people, the_last_owner_stays)
{
    static const struct {
        const char *method, *target, *json;
    } WAYS[] = {
        {"POST", "/role", "{\"role\":\"developer\"}"},
        {"POST", "/disable", "{}"},
        {"DELETE", "", NULL},
        {"POST", "/reset", NULL},
    };
    struct fixture_session session;
    struct fixture_user other;
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
            cr_expect_eq(
                people_change(&people, 0, &people.fixture.user, WAYS[i].method, WAYS[i].target, WAYS[i].json, &answer),
                409, "%s %s, round %zu: %s", WAYS[i].method, WAYS[i].target, round, answer.body);
            cr_expect_str_eq(http_answer_code(&answer), "last_owner");
        }
        /* Another owner who is disabled, or one who has no password, is none. */
        if (round == 0) {
            people_add(&people, "other@clinic.test", ROLE_OWNER, &other, &session);
            cr_assert_eq(people_change(&people, 0, &other, "POST", "/disable", "{}", &answer), 200, "%s", answer.body);
        } else if (round == 1) {
            cr_assert_eq(people_change(&people, 0, &other, "POST", "/enable", NULL, &answer), 200, "%s", answer.body);
            cr_assert_eq(people_change(&people, 0, &other, "POST", "/reset", NULL, &answer), 200, "%s", answer.body);
        }
    }
    people_stop(&people);
}

/* Two owners, each of whom takes the other's role at another node, at once. */
Test(people, two_owners_cannot_both_go)
{
    struct people people;

    people_start(&people, 2, NULL);
    for (int round = 0; round < 5; round++) {
        struct fixture_user users[2];
        struct fixture_session sessions[2];
        struct http_client clients[2];
        struct http_answer answer;
        int demoted = 0;

        for (size_t i = 0; i < 2; i++) {
            char email[40];

            snprintf(email, sizeof email, "owner%zu-%d@clinic.test", i, round);
            people_add(&people, email, ROLE_OWNER, &users[i], &sessions[i]);
        }
        if (round == 0)
            cr_assert_eq(people_ask(&people, 0, &sessions[0], "GET", "/v1/console/session", NULL, &answer), 200);
        /* Everybody else steps back. */
        for (size_t i = 0; i < 2; i++)
            http_client_connect(&clients[i], people.fixture.nodes[i].port);
        for (size_t i = 0; i < 2; i++) {
            char target[96];

            snprintf(target, sizeof target, "/v1/console/users/%.31s/role", users[1 - i].id);
            http_client_send_call(&clients[i], &(struct http_call){.method = "POST",
                                                                   .target = target,
                                                                   .cookie = sessions[i].token,
                                                                   .csrf = sessions[i].csrf,
                                                                   .json = "{\"role\":\"auditor\"}"});
        }
        for (size_t i = 0; i < 2; i++) {
            cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
            demoted += answer.status == 200;
            cr_expect(answer.status == 200 || strcmp(http_answer_code(&answer), "role_not_permitted") == 0, "%d %s",
                      answer.status, answer.body);
            http_client_close(&clients[i]);
        }
        cr_expect_eq(demoted, 1, "one of them came first, and the other was none any more");
    }
    people_stop(&people);
}

static void expect_dead(const struct people *people, const struct fixture_key *key, const char *code)
{
    for (size_t node = 0; node < people->fixture.node_count; node++) {
        struct http_answer answer;
        const struct http_call call = {.target = "/v1/whoami", .bearer = key->secret};

        cr_expect_eq(fixture_call(&people->fixture, node, &call, &answer), code ? 401 : 200, "node %zu: %s", node,
                     answer.body);
        if (code)
            cr_expect_str_eq(http_answer_code(&answer), code);
    }
}

Test(people, who_is_disabled_has_nothing_left)
{
    struct fixture_key live, test, child, others;
    struct fixture_session session, second;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;
    char both[2 * ID_TEXT_BYTES];

    people_start(&people, 3, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    fixture_add_session(&people.fixture, &user, false, &second);
    people_make_key(&people, &session, "live", &live);
    people_make_key(&people, &session, "test", &test);
    people_make_key(&people, &people.owner, "live", &others);
    /* Made with the leaver's key: it is not of the leaver's making, so it is kept, and named. */
    cr_assert_eq(fixture_call(&people.fixture, 0,
                              &(struct http_call){
                                  .method = "POST",
                                  .target = "/v1/api_keys",
                                  .bearer = live.secret,
                                  .json = "{\"name\":\"child\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}"},
                              &answer),
                 201);
    cr_assert(http_answer_json(&answer, "id", child.id, sizeof child.id) &&
              http_answer_json(&answer, "secret", child.secret, sizeof child.secret));
    for (size_t i = 0; i < 3; i++)
        expect_dead(&people, i == 0 ? &live : i == 1 ? &test : &child, NULL); /* every node has them in memory */

    cr_assert_eq(people_change(&people, 0, &user, "POST", "/disable", "{\"revoke_keys\":\"made\"}", &answer), 200, "%s",
                 answer.body);
    expect_dead(&people, &live, "api_key_revoked");
    expect_dead(&people, &test, "api_key_revoked");
    expect_dead(&people, &child, NULL);
    expect_dead(&people, &others, NULL);
    for (size_t node = 0; node < 3; node++) {
        cr_expect_eq(show_session(&people, node, &session), 401);
        cr_expect_eq(show_session(&people, node, &second), 401);
    }
    expect_json(&answer, "user.status", "disabled");
    expect_json(&answer, "sessions_ended", "2");
    snprintf(both, sizeof both, "%s %s", live.id, test.id);
    expect_json(&answer, "keys_revoked", both);
    expect_json(&answer, "keys_kept", child.id);

    /* Again: the same answer. Enabled: nothing comes back. */
    cr_assert_eq(people_change(&people, 1, &user, "POST", "/disable", "{\"revoke_keys\":\"made\"}", &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 2, "%s", answer.body);
    expect_json(&answer, "sessions_ended", "0");
    expect_json(&answer, "keys_kept", child.id);
    /* Or all of them. */
    cr_assert_eq(people_change(&people, 1, &user, "POST", "/disable", "{\"revoke_keys\":true}", &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 3, "%s", answer.body);
    cr_expect_eq(http_answer_json_count(&answer, "keys_kept"), 0, "%s", answer.body);
    expect_dead(&people, &child, "api_key_revoked");
    cr_assert_eq(people_change(&people, 1, &user, "POST", "/enable", NULL, &answer), 200);
    expect_json(&answer, "status", "active");
    cr_expect_eq(show_session(&people, 2, &session), 401);
    expect_dead(&people, &live, "api_key_revoked");
    people_stop(&people);
}

/* A key of a device that the session's user approved. */
static void approve_device(const struct people *people, const struct fixture_session *session,
                           struct fixture_key *ret_key)
{
    struct http_call call = {.method = "POST",
                             .target = "/v1/auth/device_authorization",
                             .form = "client_id=desktop-agent&device_name=Ward+PC"};
    char code[64], user_code[16], target[96], form[256];
    struct http_answer answer;

    cr_assert_eq(fixture_call(&people->fixture, 0, &call, &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "device_code", code, sizeof code) &&
              http_answer_json(&answer, "user_code", user_code, sizeof user_code));
    snprintf(target, sizeof target, "/v1/console/device_enrolments/%s/approve", user_code);
    cr_assert_eq(people_ask(people, 0, session, "POST", target, NULL, &answer), 200, "%s", answer.body);
    snprintf(form, sizeof form,
             "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=%s&client_id=desktop-agent", code);
    call = (struct http_call){.method = "POST", .target = "/v1/auth/token", .form = form};
    cr_assert_eq(fixture_call(&people->fixture, 0, &call, &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "access_token", ret_key->secret, sizeof ret_key->secret));
}

Test(people, devices_go_with_whoever_approved_them)
{
    struct fixture_session session;
    struct fixture_key device;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    approve_device(&people, &session, &device);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/disable", "{\"revoke_keys\":true}", &answer), 200, "%s",
                 answer.body);
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 1, "%s", answer.body);
    expect_dead(&people, &device, "device_key_revoked");
    people_stop(&people);
}

/* Whoever writes to Redis promotes nobody. */
Test(people, a_user_altered_in_redis_is_not_found)
{
    struct fixture_session session;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;
    char name[64];

    people_start(&people, 1, NULL);
    people_add(&people, "new@clinic.test", ROLE_AUDITOR, &user, &session);
    snprintf(name, sizeof name, "%suser:%s", fixture_name(people.fixture.account, ""), user.id);
    redis_server_tell(&people.fixture.redis, "HSET", name, "role", "owner", NULL);
    cr_expect_eq(people_change(&people, 0, &user, "GET", "", NULL, &answer), 404, "%s", answer.body);
    cr_expect_eq(people_change(&people, 0, &user, "POST", "/role", "{\"role\":\"owner\"}", &answer), 404, "%s",
                 answer.body);
    cr_assert_eq(people_ask(&people, 0, &people.owner, "GET", "/v1/console/users", NULL, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 1);
    people_stop(&people);
}

Test(people, keys_are_kept_by_name)
{
    struct fixture_session session;
    struct fixture_user user;
    struct fixture_key key;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &key);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/disable", "{\"revoke_keys\":false}", &answer), 200);
    expect_json(&answer, "keys_kept", key.id);
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 0);
    expect_dead(&people, &key, NULL);
    cr_assert_eq(people_change(&people, 1, &user, "DELETE", "?revoke_keys=true", NULL, &answer), 200, "%s",
                 answer.body);
    expect_json(&answer, "keys_revoked", key.id);
    expect_dead(&people, &key, "api_key_revoked");
    cr_expect_eq(people_change(&people, 0, &user, "GET", "", NULL, &answer), 404);

    /* The email is free, and the trail still names it. */
    people_add(&people, "leaver@clinic.test", ROLE_AUDITOR, &user, &session);
    cr_assert_eq(people_ask(&people, 0, &session, "GET", "/v1/console/audit_events?limit=100", NULL, &answer), 200);
    cr_expect_not_null(strstr(answer.body, "\"type\":\"user.removed\""));
    cr_expect_not_null(strstr(answer.body, "\"target_name\":\"leaver@clinic.test\""));
    people_stop(&people);
}

Test(people, more_keys_than_one_portion_are_revoked_together)
{
    enum { KEYS = 230 };
    struct fixture_session session;
    struct fixture_key keys[KEYS];
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "maker@clinic.test", ROLE_DEVELOPER, &user, &session);
    for (size_t i = 0; i < KEYS; i++)
        people_make_key(&people, &session, i % 2 ? "live" : "test", &keys[i]);
    for (size_t i = 0; i < KEYS; i++)
        cr_assert_eq(fixture_try_key(&people.fixture, i % 2, keys[i].secret), 200);
    cr_assert_eq(people_change(&people, 0, &user, "DELETE", "?revoke_keys=true", NULL, &answer), 200, "%s",
                 answer.body);
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), KEYS);
    for (size_t i = 0; i < KEYS; i++)
        for (size_t node = 0; node < 2; node++)
            cr_expect_eq(fixture_try_key(&people.fixture, node, keys[i].secret), 401, "key %zu, node %zu", i, node);
    people_stop(&people);
}

/* Redis is lost in the middle: nothing is promised, and repeating completes it. */
Test(people, a_removal_that_was_cut_is_completed_by_the_next)
{
    struct fixture_session session;
    struct fixture_user user;
    struct fixture_key key;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, (const char *const[]){"--redis-timeout-ms", "2000", NULL});
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &key);
    redis_server_tell_all(&people.fixture.redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL);
    cr_expect_eq(people_change(&people, 0, &user, "DELETE", "?revoke_keys=true", NULL, &answer), 503, "%s",
                 answer.body);
    redis_server_tell_all(&people.fixture.redis, "CLIENT", "UNPAUSE", NULL);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (people_change(&people, 1, &user, "DELETE", "?revoke_keys=true", NULL, &answer) == 503)
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
    cr_expect_eq(answer.status, 200, "%s", answer.body);
    expect_dead(&people, &key, "api_key_revoked");
    cr_expect_eq(show_session(&people, 0, &session), 401);
    people_stop(&people);
}

/* Keys made with keys, and their replacements */

static void read_key(const struct http_answer *answer, struct fixture_key *ret_key)
{
    cr_assert_eq(answer->status, 201, "%s", answer->body);
    cr_assert(http_answer_json(answer, "id", ret_key->id, sizeof ret_key->id) &&
              http_answer_json(answer, "secret", ret_key->secret, sizeof ret_key->secret));
}

/* With another key. */
static void make_with(const struct people *people, const struct fixture_key *maker, struct fixture_key *ret_key)
{
    struct http_answer answer;

    fixture_call(&people->fixture, 0,
                 &(struct http_call){.method = "POST",
                                     .target = "/v1/api_keys",
                                     .bearer = maker->secret,
                                     .json = "{\"name\":\"child\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}"},
                 &answer);
    read_key(&answer, ret_key);
}

/* By a node: a command would wait for all leases, forty times. */
static void revoke_replaced(const struct people *people, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    cr_assert_eq(fixture_call(&people->fixture, 0,
                              &(struct http_call){
                                  .method = "DELETE", .target = target, .bearer = people->fixture.manager.secret},
                              &answer),
                 200, "%s", answer.body);
}

/* By itself, or by another key. */
static void replace_with(const struct people *people, const struct fixture_key *by, struct fixture_key *key)
{
    struct http_answer answer;
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s/replacement", key->id);
    fixture_call(&people->fixture, 0,
                 &(struct http_call){
                     .method = "POST", .target = target, .bearer = by->secret, .json = "{\"overlap_seconds\":0}"},
                 &answer);
    revoke_replaced(people, key);
    read_key(&answer, key);
}

static void replace_in_console(const struct people *people, const struct fixture_session *session,
                               struct fixture_key *key)
{
    struct http_answer answer;
    char target[96];

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/replacement", key->id);
    people_ask(people, 0, session, "POST", target, "{\"overlap_seconds\":0}", &answer);
    revoke_replaced(people, key);
    read_key(&answer, key);
}

static void expect_ids(const struct http_answer *answer, const char *list, const struct fixture_key *keys, size_t count)
{
    char key[64], id[ID_TEXT_BYTES];

    cr_expect_eq(http_answer_json_count(answer, list), count, "%s", answer->body);
    for (size_t i = 0; i < count; i++) {
        bool is_there = false;

        for (size_t at = 0; at < count && !is_there; at++) {
            snprintf(key, sizeof key, "%s.%zu", list, at);
            is_there = http_answer_json(answer, key, id, sizeof id) && strcmp(id, keys[i].id) == 0;
        }
        cr_expect(is_there, "%s lacks %zu, %s", list, i, keys[i].id);
    }
}

enum { GENERATIONS = 20 };

/* keys: made by one another; the first by the session. rotated: replaced itself as often. */
static void make_generations(const struct people *people, const struct fixture_session *session,
                             struct fixture_key keys[GENERATIONS + 1], struct fixture_key *rotated)
{
    people_make_key(people, session, "live", &keys[0]);
    people_make_key(people, session, "live", rotated);
    for (size_t i = 0; i < GENERATIONS; i++) {
        make_with(people, &keys[i], &keys[i + 1]);
        replace_with(people, rotated, rotated);
    }
}

Test(people, whoever_goes_takes_along_all_generations_of_keys)
{
    struct fixture_key keys[GENERATIONS + 2], others;
    struct fixture_session session;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    make_generations(&people, &session, keys, &keys[GENERATIONS + 1]);
    people_make_key(&people, &people.owner, "live", &others);
    make_with(&people, &others, &others);
    for (size_t i = 0; i < GENERATIONS + 2; i++)
        expect_dead(&people, &keys[i], NULL); /* every node has it in memory */
    cr_assert_eq(people_change(&people, 0, &user, "DELETE", "?revoke_keys=true", NULL, &answer), 200, "%s",
                 answer.body);
    expect_ids(&answer, "keys_revoked", keys, GENERATIONS + 2);
    cr_expect_eq(http_answer_json_count(&answer, "keys_kept"), 0, "%s", answer.body);
    for (size_t i = 0; i < GENERATIONS + 2; i++)
        expect_dead(&people, &keys[i], "api_key_revoked");
    expect_dead(&people, &others, NULL);
    people_stop(&people);
}

/* Of the person's making are the key that was made in the console, and what replaces such a key. The others are named.
 */
Test(people, what_a_person_made_goes_and_what_keys_made_is_named)
{
    struct fixture_key keys[GENERATIONS + 1], rotated;
    struct fixture_session session;
    struct fixture_user user;
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    make_generations(&people, &session, keys, &rotated);
    cr_assert_eq(people_change(&people, 0, &user, "DELETE", "?revoke_keys=made", NULL, &answer), 200, "%s",
                 answer.body);
    expect_ids(&answer, "keys_revoked", (const struct fixture_key[]){keys[0], rotated}, 2);
    expect_ids(&answer, "keys_kept", keys + 1, GENERATIONS);
    expect_dead(&people, &keys[0], "api_key_revoked");
    expect_dead(&people, &rotated, "api_key_revoked");
    expect_dead(&people, &keys[GENERATIONS], NULL);
    people_stop(&people);
}

static void expect_goes_with(const struct people *people, const struct fixture_user *user, const char *fate,
                             const struct fixture_key *keys, size_t count)
{
    struct http_answer answer;
    char body[64];

    snprintf(body, sizeof body, "{\"revoke_keys\":\"%s\"}", fate);
    cr_assert_eq(people_change(people, 0, user, "POST", "/disable", body, &answer), 200, "%s", answer.body);
    expect_ids(&answer, "keys_revoked", keys, count);
}

/* Whoever replaces a key in the console has seen its secret; it stays of the making of whoever made it. */
Test(people, a_key_that_another_person_replaced_goes_with_either)
{
    struct fixture_key keys[4], child;
    struct fixture_session session, other;
    struct fixture_user maker, replacer;
    struct http_answer answer;
    struct people people;
    char target[96];

    people_start(&people, 2, NULL);
    people_add(&people, "maker@clinic.test", ROLE_DEVELOPER, &maker, &session);
    people_add(&people, "replacer@clinic.test", ROLE_DEVELOPER, &replacer, &other);
    for (size_t i = 0; i < 4; i++) {
        people_make_key(&people, &session, "live", &keys[i]);
        replace_in_console(&people, &other, &keys[i]);
    }
    replace_with(&people, &keys[1], &keys[1]); /* and is rotated since */
    make_with(&people, &keys[2], &child);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s", keys[1].id);
    cr_assert_eq(people_ask(&people, 0, &other, "GET", target, NULL, &answer), 200);
    expect_json(&answer, "created_by", maker.id);
    expect_json(&answer, "origin", replacer.id);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s", child.id);
    cr_assert_eq(people_ask(&people, 0, &other, "GET", target, NULL, &answer), 200);
    expect_json(&answer, "created_by", keys[2].id);
    expect_json(&answer, "origin", replacer.id);
    cr_assert_eq(people_change(&people, 0, &replacer, "POST", "/disable", "{}", &answer), 200, "%s", answer.body);
    expect_ids(&answer, "keys_kept", (const struct fixture_key[]){keys[0], keys[1], keys[2], keys[3], child}, 5);
    fixture_revoke_key(&people.fixture, &keys[3]);
    expect_goes_with(&people, &replacer, "made", keys, 3);
    expect_goes_with(&people, &replacer, "all", (const struct fixture_key[]){keys[0], keys[1], keys[2], child}, 4);
    for (size_t i = 0; i < 3; i++) {
        people_make_key(&people, &session, "live", &keys[i]);
        replace_in_console(&people, &people.owner, &keys[i]);
    }
    expect_goes_with(&people, &maker, "made", keys, 3);
    people_stop(&people);
}

static void expect_output(struct people *people, const char *const *words, const char *wanted)
{
    struct cli_run run;

    cli_run(&people->fixture, &run, words, NULL);
    cr_expect(run.exit_code == 0 || fixture_in_cluster(), "%s", run.err); /* its primaries have no replicas here */
    cr_expect_not_null(strstr(run.out, wanted), "'%s' lacks %s", run.out, wanted);
    cli_finish(&run);
}

static const char *const DOCTOR[] = {"doctor", "--json", "--public-origin", NODE_ORIGIN, NULL};

/* A lowered role leaves no key without a word. */
Test(people, keys_go_with_the_role_or_are_named)
{
    struct fixture_session session;
    struct fixture_user user;
    struct fixture_key keys[2];
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "dev@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &keys[0]);
    make_with(&people, &keys[0], &keys[1]);
    cr_assert_eq(people_change(&people, 0, &user, "POST", "/role", "{\"role\":\"auditor\"}", &answer), 200, "%s",
                 answer.body);
    expect_json(&answer, "user.role", "auditor");
    expect_json(&answer, "sessions_ended", "0");
    cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 0);
    expect_ids(&answer, "keys_kept", keys, 2);
    expect_output(&people, DOCTOR, keys[1].id);
    expect_output(&people, DOCTOR, "2 active keys hold scopes that the role of their person may not give");
    cr_assert_eq(
        people_change(&people, 0, &user, "POST", "/role", "{\"role\":\"auditor\",\"revoke_keys\":\"all\"}", &answer),
        200, "%s", answer.body);
    expect_ids(&answer, "keys_revoked", keys, 2);
    for (size_t i = 0; i < 2; i++)
        expect_dead(&people, &keys[i], "api_key_revoked");
    expect_output(&people, DOCTOR, "0 active keys hold scopes");
    cr_expect_eq(show_session(&people, 1, &session), 200, "the person stays");
    cr_assert_eq(people_ask(&people, 0, &people.owner, "GET", "/v1/console/audit_events?type=api_key.revoked&limit=1",
                            NULL, &answer),
                 200);
    expect_json(&answer, "data.0.data.reason", "user_role_changed");
    expect_json(&answer, "data.0.data.user", user.id);
    /* Neither is a wrong word taken for anything. */
    cr_expect_eq(
        people_change(&people, 0, &user, "POST", "/role", "{\"role\":\"auditor\",\"revoke_keys\":\"some\"}", &answer),
        400);
    expect_json(&answer, "error.param", "revoke_keys");
    people_stop(&people);
}

/* The answer to the first removal may have been lost. */
Test(people, a_removal_can_be_repeated)
{
    struct fixture_key keys[2];
    struct fixture_session session;
    struct fixture_user user, nobody;
    char account[ID_TEXT_BYTES], both[2 * ID_TEXT_BYTES];
    struct http_answer answer;
    struct people people;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &keys[0]);
    make_with(&people, &keys[0], &keys[1]);
    cr_assert_eq(people_change(&people, 0, &user, "DELETE", "", NULL, &answer), 200, "%s", answer.body);
    expect_ids(&answer, "keys_kept", keys, 2);
    expect_json(&answer, "user.status", "disabled");
    cr_assert_eq(
        people_ask(&people, 0, &people.owner, "GET", "/v1/console/audit_events?type=user.removed", NULL, &answer), 200);
    snprintf(both, sizeof both, "%s %s", keys[0].id, keys[1].id);
    expect_json(&answer, "data.0.data.keys_kept", both);
    expect_json(&answer, "data.0.data.keys_kept_count", "2");
    expect_json(&answer, "data.0.data.revoke_keys", "none");
    /* Keys that stay go on. */
    make_with(&people, &keys[1], &keys[1]);

    cr_expect_eq(people_change(&people, 1, &user, "POST", "/disable", "{}", &answer), 404);
    cr_assert_eq(people_change(&people, 1, &user, "DELETE", "", NULL, &answer), 200, "%s", answer.body);
    cr_expect_eq(http_answer_json_count(&answer, "keys_kept"), 3, "%s", answer.body);
    expect_json(&answer, "user.id", user.id);
    expect_json(&answer, "user.email", "leaver@clinic.test");
    expect_json(&answer, "user.role", "developer");
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(people_change(&people, i, &user, "DELETE", "?revoke_keys=all", NULL, &answer), 200, "%s",
                     answer.body);
        expect_json(&answer, "sessions_ended", "0");
        cr_expect_eq(http_answer_json_count(&answer, "keys_revoked"), 3, "%s", answer.body);
        cr_expect_eq(http_answer_json_count(&answer, "keys_kept"), 0, "%s", answer.body);
        expect_dead(&people, &keys[i], "api_key_revoked");
    }
    cr_assert_eq(
        people_ask(&people, 0, &people.owner, "GET", "/v1/console/audit_events?type=api_key.revoked", NULL, &answer),
        200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 3, "each once: %s", answer.body);
    expect_json(&answer, "data.2.data.reason", "user_removed");
    /* Who never was, or is another account's. */
    snprintf(nobody.id, sizeof nobody.id, "usr_%s", keys[0].id + 4);
    cr_expect_eq(people_change(&people, 0, &nobody, "DELETE", "", NULL, &answer), 404);
    fixture_add_account(&people.fixture, account);
    fixture_add_person(&people.fixture, account, "far@south.test", ROLE_AUDITOR, &nobody);
    cr_expect_eq(people_change(&people, 0, &nobody, "DELETE", "", NULL, &answer), 404);
    people_stop(&people);
}

/* What keys make while their person is removed: each is dead, or was never made. */
Test(people, no_key_slips_through_while_its_person_is_removed)
{
    enum { CLIENTS = 24, AGAIN = 6 };
    static struct http_client clients[CLIENTS];
    static struct fixture_key made[CLIENTS * AGAIN];
    struct http_answer answer, removed;
    struct fixture_session session;
    struct http_client owner;
    struct fixture_user user;
    struct fixture_key key;
    struct people people;
    char target[96];
    size_t count = 0;

    people_start(&people, 2, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_make_key(&people, &session, "live", &key);
    const struct http_call create = {.method = "POST",
                                     .target = "/v1/api_keys",
                                     .bearer = key.secret,
                                     .json = "{\"name\":\"late\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}"};
    snprintf(target, sizeof target, "/v1/console/users/%s?revoke_keys=true", user.id);
    const struct http_call removal = {
        .method = "DELETE", .target = target, .cookie = people.owner.token, .csrf = people.owner.csrf};
    for (size_t i = 0; i < CLIENTS; i++)
        http_client_connect(&clients[i], people.fixture.nodes[i % 2].port);
    http_client_connect(&owner, people.fixture.nodes[1].port);
    for (size_t again = 0; again < AGAIN; again++) {
        for (size_t i = 0; i < CLIENTS; i++)
            http_client_send_call(&clients[i], &create);
        if (again == 1)
            http_client_send_call(&owner, &removal);
        for (size_t i = 0; i < CLIENTS; i++) {
            cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
            if (answer.status == 201)
                read_key(&answer, &made[count++]);
        }
    }
    cr_assert_eq(http_client_read(&owner, false, PATIENCE_MS, &removed), HTTP_CLIENT_ANSWER);
    cr_assert_eq(removed.status, 200, "%s", removed.body);
    cr_expect_geq(count, CLIENTS);
    cr_expect_eq(http_answer_json_count(&removed, "keys_revoked"), count + 1, "%s", removed.body);
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(fixture_try_key(&people.fixture, i % 2, made[i].secret), 401, "%zu of %zu", i, count);
    for (size_t i = 0; i < CLIENTS; i++)
        http_client_close(&clients[i]);
    http_client_close(&owner);
    people_stop(&people);
}

/* After a leak: everything that came from a person, or from one key. */
Test(people, commands_revoke_what_came_from_a_person_or_a_key)
{
    static struct fixture_key keys[GENERATIONS + 2], others[GENERATIONS + 2];
    struct fixture_key rotated, child;
    struct fixture_session session, other;
    struct fixture_user user, colleague;
    struct people people;

    people_start(&people, 1, NULL);
    people_add(&people, "leaver@clinic.test", ROLE_DEVELOPER, &user, &session);
    people_add(&people, "colleague@clinic.test", ROLE_DEVELOPER, &colleague, &other);
    make_generations(&people, &session, keys, &keys[GENERATIONS + 1]);
    make_generations(&people, &other, others, &others[GENERATIONS + 1]);
    people_make_key(&people, &other, "live", &rotated);
    replace_with(&people, &others[0], &rotated); /* by a key that leaked */
    make_with(&people, &rotated, &child);
    expect_output(&people, (const char *const[]){"key", "revoke", "--created-by", user.id, "--dry-run", NULL},
                  "2 keys match.");
    expect_output(&people,
                  (const char *const[]){"key", "revoke", "--created-by", user.id, "--descendants", "--yes", NULL},
                  "22 keys were revoked");
    for (size_t i = 0; i < GENERATIONS + 2; i++) {
        expect_dead(&people, &keys[i], "api_key_revoked");
        expect_dead(&people, &others[i], NULL);
    }
    expect_output(&people,
                  (const char *const[]){"key", "revoke", "--created-by", others[0].id, "--descendants", "--yes", NULL},
                  "23 keys were revoked");
    for (size_t i = 0; i <= GENERATIONS; i++)
        expect_dead(&people, &others[i], "api_key_revoked");
    expect_dead(&people, &others[GENERATIONS + 1], NULL);
    expect_dead(&people, &rotated, "api_key_revoked");
    expect_dead(&people, &child, "api_key_revoked");
    people_stop(&people);
}

/* A person gives keys what the role may; --grant-policy is about keys that keys make. */
Test(people, a_key_holds_at_most_what_its_maker_may)
{
    static const char *const MORE[] = {"--grant-policy", "any", NULL};
    static const struct {
        const char *json;
        int by_developer;
    } CASES[] = {
        {"{\"name\":\"a\",\"mode\":\"live\"}", 403},
        {"{\"name\":\"a\",\"mode\":\"test\"}", 403},
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"team:manage\"]}", 403},
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"usage:read\",\"org:manage\"]}", 403},
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"keys:manage\",\"documents:write\",\"audit:read\"]}", 201},
        {"{\"name\":\"a\",\"mode\":\"live\",\"decoy\":true}", 201},
    };
    struct fixture_session session;
    struct fixture_user developer;
    struct fixture_key powerful, plain;
    struct http_answer answer;
    struct people people;
    char target[96];

    people_start(&people, 1, MORE);
    people_add(&people, "dev@clinic.test", ROLE_DEVELOPER, &developer, &session);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        people_ask(&people, 0, &session, "POST", "/v1/console/api_keys", CASES[i].json, &answer);
        cr_expect_eq(answer.status, CASES[i].by_developer, "%s: %s", CASES[i].json, answer.body);
        if (answer.status == 403)
            cr_expect_str_eq(http_answer_code(&answer), "scope_not_grantable");
        people_ask(&people, 0, &people.owner, "POST", "/v1/console/api_keys", CASES[i].json, &answer);
        cr_expect_eq(answer.status, 201, "%s: %s", CASES[i].json, answer.body);
    }
    /* By way of replacing one. */
    fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_TEAM_MANAGE, &powerful);
    fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_USAGE_READ, &plain);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/replacement", powerful.id);
    people_ask(&people, 0, &session, "POST", target, "{\"overlap_seconds\":3600}", &answer);
    cr_expect_eq(answer.status, 403, "%s", answer.body);
    cr_expect_not_null(strstr(answer.body, "Missing: team:manage."));
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/replacement", plain.id);
    people_ask(&people, 0, &session, "POST", target, "{\"overlap_seconds\":3600}", &answer);
    cr_expect_eq(answer.status, 201, "%s", answer.body);
    people_stop(&people);
}

Test(people, a_key_invites_to_no_role_that_is_worth_more)
{
    enum { READS = SCOPE_AUDIT_READ | SCOPE_USAGE_READ, MOST = SCOPE_ALL & ~(SCOPE_TEAM_MANAGE | SCOPE_ORG_MANAGE) };
    static const struct {
        scope_set scopes;
        int auditor, responder, developer;
    } CASES[] = {
        {SCOPE_NONE, 403, 403, 403},
        {SCOPE_AUDIT_READ, 403, 403, 403},
        {SCOPE_KEYS_MANAGE | SCOPE_ORG_MANAGE, 403, 403, 403},
        {READS, 201, 403, 403},
        {READS | SCOPE_KEYS_MANAGE, 201, 201, 403},
        {MOST & ~SCOPE_SANDBOX_MANAGE, 201, 201, 403},
        {MOST, 201, 201, 201},
    };
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const int expected[] = {CASES[i].auditor, CASES[i].responder, CASES[i].developer};
        struct fixture_key key;

        fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, CASES[i].scopes | SCOPE_TEAM_MANAGE, &key);
        for (enum role role = ROLE_AUDITOR; role <= ROLE_DEVELOPER; role++) {
            char body[96];

            snprintf(body, sizeof body, "{\"email\":\"n%zu%d@clinic.test\",\"role\":\"%s\"}", i, role,
                     role_text(role).ptr);
            fixture_call(&people.fixture, 0,
                         &(struct http_call){
                             .method = "POST", .target = "/v1/team/invitations", .bearer = key.secret, .json = body},
                         &answer);
            cr_expect_eq(answer.status, expected[role], "%zu: %s: %s", i, body, answer.body);
            if (answer.status == 403) {
                cr_expect_str_eq(http_answer_code(&answer), "scope_not_grantable");
                cr_expect_not_null(strstr(answer.body, "\"param\":\"role\""));
            }
        }
    }
    people_stop(&people);
}

Test(people, team_is_for_live_keys_and_never_above_developers)
{
    struct fixture_key live, test, narrow;
    struct fixture_user owner, developer;
    struct fixture_session session;
    char target[96], account[ID_TEXT_BYTES];
    struct http_answer answer;
    struct people people;

    people_start(&people, 1, NULL);
    fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &live);
    fixture_add_key(&people.fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &test);
    fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_KEYS_MANAGE, &narrow);
    people_add(&people, "second@clinic.test", ROLE_OWNER, &owner, &session);
    people_add(&people, "dev@clinic.test", ROLE_DEVELOPER, &developer, &session);
    const struct http_call list = {.target = "/v1/team", .bearer = live.secret};
    cr_assert_eq(fixture_call(&people.fixture, 0, &list, &answer), 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 3);
    static const char *const REFUSED[] = {"owner", "admin"};
    struct http_call invite = {.method = "POST", .target = "/v1/team/invitations", .bearer = live.secret};
    for (size_t i = 0; i < 2; i++) {
        char body[96];

        snprintf(body, sizeof body, "{\"email\":\"new@clinic.test\",\"role\":\"%s\"}", REFUSED[i]);
        invite.json = body;
        cr_expect_eq(fixture_call(&people.fixture, 0, &invite, &answer), i == 0 ? 403 : 400, "%s", answer.body);
    }
    invite.json = "{\"email\":\"new@clinic.test\",\"role\":\"developer\"}";
    cr_expect_eq(fixture_call(&people.fixture, 0, &invite, &answer), 201, "%s", answer.body);
    invite.bearer = test.secret;
    cr_expect_eq(fixture_call(&people.fixture, 0, &invite, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "mode_not_permitted");
    for (size_t i = 0; i < 2; i++) {
        const struct http_call refused = {.method = i ? "DELETE" : "GET", .target = target, .bearer = test.secret};

        snprintf(target, sizeof target, i ? "/v1/team/%s" : "/v1/team", developer.id);
        cr_expect_eq(fixture_call(&people.fixture, 0, &refused, &answer), 403, "%s", answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "mode_not_permitted");
    }
    invite.bearer = narrow.secret;
    cr_expect_eq(fixture_call(&people.fixture, 0, &invite, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "insufficient_scope");

    struct http_call remove = {.method = "DELETE", .target = target, .bearer = live.secret};
    snprintf(target, sizeof target, "/v1/team/%s", owner.id);
    cr_expect_eq(fixture_call(&people.fixture, 0, &remove, &answer), 403, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "role_not_permitted");
    snprintf(target, sizeof target, "/v1/team/%s?revoke_keys=true", developer.id);
    cr_expect_eq(fixture_call(&people.fixture, 0, &remove, &answer), 200, "%s", answer.body);
    cr_expect_eq(show_session(&people, 0, &session), 401);
    /* Another account's. */
    fixture_add_account(&people.fixture, account);
    fixture_add_person(&people.fixture, account, "far@south.test", ROLE_AUDITOR, &developer);
    snprintf(target, sizeof target, "/v1/team/%s", developer.id);
    cr_expect_eq(fixture_call(&people.fixture, 0, &remove, &answer), 404);
    people_stop(&people);
}
