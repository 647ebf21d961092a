/* The life of API keys through two nodes: what one answers, the other must know. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

TestSuite(keys, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { TEXT_BYTES = 512 };

static const char *json_of(const struct http_answer *answer, const char *path)
{
    static char value[TEXT_BYTES];

    if (!http_answer_json(answer, path, value, sizeof value))
        snprintf(value, sizeof value, "(absent)");
    return value;
}

static void ask(const struct fixture *fixture, size_t node, const char *method, const char *target, const char *bearer,
                const char *json, struct http_answer *ret_answer)
{
    struct http_call call = {.method = method, .target = target, .bearer = bearer, .json = json};

    fixture_call(fixture, node, &call, ret_answer);
}

static void key_path(const struct fixture_key *key, char ret_path[64])
{
    snprintf(ret_path, 64, "/v1/api_keys/%s", key->id);
}

Test(keys, what_one_node_creates_the_other_accepts_and_shows)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64], last4[5];

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    ask(&fixture, 1, "GET", "/v1/whoami", key.secret, NULL, &answer);
    cr_expect_eq(answer.status, 200);
    cr_expect_str_eq(json_of(&answer, "id"), key.id);
    cr_expect_str_eq(json_of(&answer, "kind"), "api_key");
    cr_expect_str_eq(json_of(&answer, "account_id"), fixture.account);
    cr_expect_str_eq(json_of(&answer, "name"), "a");
    cr_expect_str_eq(json_of(&answer, "mode"), "live");
    cr_expect_str_eq(json_of(&answer, "scopes"), "patients:read");

    key_path(&key, path);
    ask(&fixture, 1, "GET", path, fixture.manager.secret, NULL, &answer);
    cr_expect_eq(answer.status, 200);
    snprintf(last4, sizeof last4, "%s", key.secret + strlen(key.secret) - 4);
    cr_expect_str_eq(json_of(&answer, "last4"), last4);
    cr_expect_str_eq(json_of(&answer, "revoked_at"), "null");
    cr_expect_str_eq(json_of(&answer, "secret"), "(absent)");
    fixture_stop(&fixture);
}

Test(keys, a_revocation_holds_at_every_node_once_it_is_answered)
{
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 2, NULL);
    for (size_t i = 0; i < 30; i++) {
        struct fixture_key key;
        char path[64];

        fixture_create_key(&fixture, i % 2, "{\"name\":\"a\",\"mode\":\"test\"}", &key);
        cr_assert_eq(fixture_try_key(&fixture, 0, key.secret), 200);
        cr_assert_eq(fixture_try_key(&fixture, 1, key.secret), 200);
        key_path(&key, path);
        ask(&fixture, i % 2, "DELETE", path, fixture.manager.secret, NULL, &answer);
        cr_assert_eq(answer.status, 200);
        cr_assert_str_eq(json_of(&answer, "id"), key.id);
        cr_assert_str_neq(json_of(&answer, "revoked_at"), "null");
        for (size_t node = 0; node < 2; node++) {
            /* Refused, or not decided; 200 alone would break the promise. */
            fixture_await_key(&fixture, (i + node + 1) % 2, key.secret, 401);
            ask(&fixture, (i + node + 1) % 2, "GET", "/v1/whoami", key.secret, NULL, &answer);
            cr_assert_neq(answer.status, 200);
            cr_assert(answer.status == 503 || strcmp(http_answer_code(&answer), "api_key_revoked") == 0, "%s",
                      answer.body);
        }
    }
    fixture_stop(&fixture);
}

Test(keys, a_second_delete_answers_the_same)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64], first[TEXT_BYTES];

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    key_path(&key, path);
    ask(&fixture, 0, "DELETE", path, fixture.manager.secret, NULL, &answer);
    cr_assert_eq(answer.status, 200);
    snprintf(first, sizeof first, "%.500s", answer.body);
    ask(&fixture, 1, "DELETE", path, fixture.manager.secret, NULL, &answer);
    cr_expect_eq(answer.status, 200);
    cr_expect_str_eq(answer.body, first);
    ask(&fixture, 1, "GET", path, fixture.manager.secret, NULL, &answer);
    cr_expect_str_eq(answer.body, first);
    fixture_stop(&fixture);
}

Test(keys, a_key_may_revoke_itself)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64];

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"test\",\"scopes\":[\"keys:manage\"]}", &key);
    key_path(&key, path);
    ask(&fixture, 0, "DELETE", path, key.secret, NULL, &answer);
    cr_expect_eq(answer.status, 200);
    cr_expect_str_neq(json_of(&answer, "revoked_at"), "null");
    cr_expect_eq(fixture_try_key(&fixture, 0, key.secret), 401);
    ask(&fixture, 1, "DELETE", path, key.secret, NULL, &answer);
    cr_expect_eq(answer.status, 401);
    cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked");
    fixture_stop(&fixture);
}

enum { LISTED = 200, LIST_BYTES = LISTED * 40 + 64 };

/* {"ids": [those of the keys]} */
static const char *list_of(const struct fixture_key *keys, size_t count)
{
    static char json[LIST_BYTES];
    int len = snprintf(json, sizeof json, "{\"ids\":[");

    for (size_t i = 0; i < count; i++)
        len += snprintf(json + len, sizeof json - (size_t)len, "%s\"%s\"", i > 0 ? "," : "", keys[i].id);
    snprintf(json + len, sizeof json - (size_t)len, "]}");
    return json;
}

/* How many ids the response has before and after the word. */
static size_t ids_in(const char *body, const char *from, const char *to)
{
    const char *at = strstr(body, from), *end = to ? strstr(body, to) : NULL;
    size_t count = 0;

    cr_assert(at, "%s", body);
    while ((at = strstr(at + 1, "key_")) && (!end || at < end))
        count++;
    return count;
}

static void expect_outcomes(const struct http_answer *answer, size_t revoked, size_t before, size_t unknown)
{
    cr_assert_eq(answer->status, 200, "%s", answer->body);
    cr_expect_eq(ids_in(answer->body, "\"revoked\"", "\"already_revoked\""), revoked, "%s", answer->body);
    cr_expect_eq(ids_in(answer->body, "\"already_revoked\"", "\"not_found\""), before, "%s", answer->body);
    cr_expect_eq(ids_in(answer->body, "\"not_found\"", NULL), unknown, "%s", answer->body);
}

/* More than one portion, of both modes; every fourth key is in test mode. */
static void expect_events(const struct fixture *fixture, const char *type, int expected, struct http_answer *ret_answer)
{
    char target[96];

    snprintf(target, sizeof target, "/v1/audit?type=%s", type);
    ask(fixture, 1, "GET", target, fixture->manager.secret, NULL, ret_answer);
    cr_assert_eq(ret_answer->status, 200, "%s", ret_answer->body);
    cr_expect_eq(http_answer_json_count(ret_answer, "data"), expected, "%s", ret_answer->body);
}

static void await_name(const struct fixture *fixture, const struct fixture_key *key, const char *name)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    for (;;) {
        ask(fixture, 1, "GET", "/v1/whoami", key->secret, NULL, &answer);
        if (strcmp(json_of(&answer, "name"), name) == 0)
            return;
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
        poll(NULL, 0, 20);
    }
}

/* The other node has cached the old name. */
Test(keys, a_key_that_was_renamed_has_the_new_name_everywhere_and_its_rights)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64];

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"old\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    key_path(&key, path);
    fixture_await_key(&fixture, 1, key.secret, 200);
    for (size_t i = 0; i < 2; i++) { /* the second time, nothing changes */
        ask(&fixture, 0, "PATCH", path, fixture.manager.secret, "{\"name\":\"new n\u00e4me\"}", &answer);
        cr_assert_eq(answer.status, 200, "%s", answer.body);
        cr_expect_str_eq(json_of(&answer, "id"), key.id);
        cr_expect_str_eq(json_of(&answer, "name"), "new n\u00e4me");
        cr_expect_str_eq(json_of(&answer, "scopes"), "patients:read");
        cr_expect_str_eq(json_of(&answer, "revoked_at"), "null");
    }
    ask(&fixture, 1, "GET", path, fixture.manager.secret, NULL, &answer);
    cr_expect_str_eq(json_of(&answer, "name"), "new n\u00e4me");
    expect_events(&fixture, "api_key.renamed", 1, &answer);
    cr_expect_str_eq(json_of(&answer, "data.0.target"), key.id);
    cr_expect_str_eq(json_of(&answer, "data.0.data.from"), "old");
    cr_expect_str_eq(json_of(&answer, "data.0.data.to"), "new n\u00e4me");
    await_name(&fixture, &key, "new n\u00e4me");
    fixture_stop(&fixture);
}

/* The record is sealed anew, and stays revoked. */
Test(keys, a_revoked_key_can_be_renamed_and_stays_revoked)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char path[64], revoked_at[TEXT_BYTES];

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"old\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    key_path(&key, path);
    ask(&fixture, 0, "DELETE", path, fixture.manager.secret, NULL, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    snprintf(revoked_at, sizeof revoked_at, "%s", json_of(&answer, "revoked_at"));
    ask(&fixture, 1, "PATCH", path, fixture.manager.secret, "{\"name\":\"leaked\"}", &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    cr_expect_str_eq(json_of(&answer, "name"), "leaked");
    cr_expect_str_eq(json_of(&answer, "revoked_at"), revoked_at);
    for (size_t node = 0; node < 2; node++) {
        ask(&fixture, node, "GET", "/v1/whoami", key.secret, NULL, &answer);
        cr_expect_str_eq(json_of(&answer, "error.code"), "api_key_revoked");
    }
    fixture_stop(&fixture);
}

Test(keys, a_name_that_no_key_may_have_is_refused)
{
    static const struct {
        const char *json;
        int status;
        const char *code;
    } ROWS[] = {
        {"{}", 400, "parameter_missing"},
        {"{\"name\":\"\"}", 400, "parameter_invalid"},
        {"{\"name\":7}", 400, "parameter_invalid"},
        {"{\"name\":\"a\\nb\"}", 400, "parameter_invalid"},
        {"{\"name\":\"operator\"}", 400, "parameter_invalid"},
        {"{\"name\":\"a\",\"mode\":\"live\"}", 400, "parameter_unknown"},
    };
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key test, key;
    char path[64], json[256];

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"old\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    fixture_create_key(&fixture, 0, "{\"name\":\"t\",\"mode\":\"test\",\"scopes\":[\"keys:manage\"]}", &test);
    key_path(&key, path);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ask(&fixture, 0, "PATCH", path, fixture.manager.secret, ROWS[i].json, &answer);
        cr_expect_eq(answer.status, ROWS[i].status, "%s: %s", ROWS[i].json, answer.body);
        cr_expect_str_eq(json_of(&answer, "error.code"), ROWS[i].code, "%s", ROWS[i].json);
    }
    snprintf(json, sizeof json, "{\"name\":\"%s\"}", key.secret);
    ask(&fixture, 0, "PATCH", path, fixture.manager.secret, json, &answer);
    cr_expect_str_eq(json_of(&answer, "error.code"), "secret_in_text");
    ask(&fixture, 0, "PATCH", path, test.secret, "{\"name\":\"b\"}", &answer);
    cr_expect_str_eq(json_of(&answer, "error.code"), "api_key_not_found");
    ask(&fixture, 0, "PATCH", path, key.secret, "{\"name\":\"b\"}", &answer);
    cr_expect_str_eq(json_of(&answer, "error.code"), "insufficient_scope");
    ask(&fixture, 0, "GET", path, fixture.manager.secret, NULL, &answer);
    cr_expect_str_eq(json_of(&answer, "name"), "old");
    fixture_stop(&fixture);
}

Test(keys, a_list_is_revoked_at_every_node_once_it_is_answered)
{
    static struct fixture_key keys[LISTED];
    struct http_answer answer;
    struct fixture_key test_manager;
    struct fixture_session session;
    struct fixture fixture;

    fixture_start(&fixture, 2, NULL);
    fixture_open_store(&fixture);
    for (size_t i = 0; i < LISTED; i++)
        fixture_add_key(&fixture, fixture.account, KEY_API, i % 4 ? MODE_LIVE : MODE_TEST, SCOPE_ALL, &keys[i]);
    fixture_add_key(&fixture, fixture.account, KEY_API, MODE_TEST, SCOPE_ALL, &test_manager);
    fixture_close_store(&fixture);
    for (size_t i = 0; i < LISTED; i++)
        cr_assert_eq(fixture_try_key(&fixture, i % 2, keys[i].secret), 200);

    ask(&fixture, 0, "POST", "/v1/api_keys/revoke", test_manager.secret, list_of(keys, 8), &answer);
    expect_outcomes(&answer, 2, 0, 6);
    ask(&fixture, 1, "POST", "/v1/api_keys/revoke", fixture.manager.secret, list_of(keys, LISTED), &answer);
    for (size_t i = 0; i < LISTED; i++)
        cr_expect_eq(fixture_try_key(&fixture, i % 2, keys[i].secret), 401, "%zu", i);
    expect_outcomes(&answer, LISTED - 2, 2, 0);

    fixture_add_session(&fixture, NULL, false, &session);
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/console/api_keys/revoke",
                                   .cookie = session.token,
                                   .csrf = session.csrf,
                                   .json = list_of(keys, LISTED)};
    fixture_call(&fixture, 0, &call, &answer);
    expect_outcomes(&answer, 0, LISTED, 0);
    cr_expect_eq(fixture_try_key(&fixture, 0, test_manager.secret), 200);
    fixture_stop(&fixture);
}

/* Its body and its response are longer than others may be. */
Test(keys, a_list_of_ten_thousand)
{
    enum { IDS = 10000, ID_JSON_BYTES = 40 };
    static char json[(IDS + 1) * ID_JSON_BYTES];
    struct http_answer answer;
    struct fixture fixture;
    int len = snprintf(json, sizeof json, "{\"ids\":[");

    fixture_start(&fixture, 1, NULL);
    for (int i = 0; i < IDS; i++)
        len += snprintf(json + len, sizeof json - (size_t)len, "%s\"key_01jd%022d\"", i > 0 ? "," : "", i);
    snprintf(json + len, sizeof json - (size_t)len, "]}");
    ask(&fixture, 0, "POST", "/v1/api_keys/revoke", fixture.manager.secret, json, &answer);
    expect_outcomes(&answer, 0, 0, IDS);
    ask(&fixture, 0, "POST", "/v1/api_keys", fixture.manager.secret, json, &answer);
    cr_expect_eq(answer.status, 413);
    ask(&fixture, 0, "POST", "/v1/api_keys/revoke", "svc_sk_live_nobody", json, &answer);
    cr_expect_eq(answer.status, 401);
    fixture_stop(&fixture);
}

static int create_named(const struct fixture *fixture, const char *name, struct http_answer *ret_answer)
{
    char json[TEXT_BYTES];

    snprintf(json, sizeof json, "{\"name\":\"%s\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", name);
    ask(fixture, 0, "POST", "/v1/api_keys", fixture->manager.secret, json, ret_answer);
    return ret_answer->status;
}

/* In the trail it would look like that person, or like who acts without a name. */
Test(keys, none_is_called_as_a_person_of_the_account_or_as_the_operator)
{
    struct fixture_user ada;
    struct http_answer answer;
    struct fixture fixture;
    char path[128];

    fixture_start(&fixture, 1, NULL);
    fixture_add_person(&fixture, NULL, "ada@example.org", ROLE_DEVELOPER, &ada);
    cr_expect_eq(create_named(&fixture, "Ada@Example.org", &answer), 400, "%s", answer.body);
    cr_expect_str_eq(json_of(&answer, "error.param"), "name");
    cr_expect_eq(create_named(&fixture, "Operator, command line", &answer), 400, "%s", answer.body);
    cr_expect_eq(create_named(&fixture, "robot@example.org", &answer), 201, "nobody has it: %s", answer.body);
    snprintf(path, sizeof path, "/v1/api_keys/%s/replacement", json_of(&answer, "id"));

    /* Keys that exist keep their names, and hand them on. */
    fixture_add_person(&fixture, NULL, "robot@example.org", ROLE_DEVELOPER, &ada);
    ask(&fixture, 0, "POST", path, fixture.manager.secret, "{\"overlap_seconds\":60,\"name\":\"ada@example.org\"}",
        &answer);
    cr_expect_eq(answer.status, 400, "%s", answer.body);
    ask(&fixture, 0, "POST", path, fixture.manager.secret, "{\"overlap_seconds\":60}", &answer);
    cr_expect_eq(answer.status, 201, "%s", answer.body);
    cr_expect_str_eq(json_of(&answer, "name"), "robot@example.org");
    fixture_stop(&fixture);
}

Test(keys, a_key_grants_only_what_it_holds)
{
    static const struct {
        const char *json;
        int status;
    } CASES[] = {
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", 201},
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"keys:manage\",\"patients:read\"]}", 201},
        {"{\"name\":\"a\",\"mode\":\"test\",\"scopes\":[\"keys:manage\"]}", 201},
        {"{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\",\"patients:write\"]}", 403},
        {"{\"name\":\"a\",\"mode\":\"test\",\"scopes\":[\"usage:read\"]}", 403},
        {"{\"name\":\"a\",\"mode\":\"live\"}", 403},
    };
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key narrow;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_KEYS_MANAGE | SCOPE_PATIENTS_READ, &narrow);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ask(&fixture, 0, "POST", "/v1/api_keys", narrow.secret, CASES[i].json, &answer);
        cr_expect_eq(answer.status, CASES[i].status, "%s: %d", CASES[i].json, answer.status);
        if (CASES[i].status == 403)
            cr_expect_str_eq(http_answer_code(&answer), "scope_not_grantable");
    }
    fixture_stop(&fixture);
}

Test(keys, the_grant_policy_any_lifts_the_bound)
{
    static const char *const MORE[] = {"--grant-policy", "any", NULL};
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key narrow;

    fixture_start(&fixture, 1, MORE);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_KEYS_MANAGE, &narrow);
    ask(&fixture, 0, "POST", "/v1/api_keys", narrow.secret, "{\"name\":\"a\",\"mode\":\"test\"}", &answer);
    cr_expect_eq(answer.status, 201);
    ask(&fixture, 0, "POST", "/v1/api_keys", narrow.secret, "{\"name\":\"a\",\"mode\":\"live\"}", &answer);
    cr_expect_eq(answer.status, 403, "but test never touches live");
    fixture_stop(&fixture);
}

enum { OLDER_KEYS = 47, PAGE = 10 };

/* Remembers how often each of the older keys was seen. */
static void count_page(const struct http_answer *answer, char older[OLDER_KEYS][ID_TEXT_BYTES], unsigned *seen,
                       char ret_last[ID_TEXT_BYTES])
{
    int count = http_answer_json_count(answer, "data");

    cr_assert_geq(count, 0, "%s", answer->body);
    for (int i = 0; i < count; i++) {
        char path[32];

        snprintf(path, sizeof path, "data.%d.id", i);
        snprintf(ret_last, ID_TEXT_BYTES, "%.31s", json_of(answer, path));
        for (size_t k = 0; k < OLDER_KEYS; k++)
            seen[k] += strcmp(older[k], ret_last) == 0;
    }
}

Test(keys, walking_the_pages_while_keys_are_created_shows_each_older_one_once)
{
    char older[OLDER_KEYS][ID_TEXT_BYTES], last[ID_TEXT_BYTES] = "", target[128];
    unsigned seen[OLDER_KEYS] = {0}, pages = 0;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 2, NULL);
    for (size_t i = 0; i < OLDER_KEYS; i++) {
        fixture_create_key(&fixture, i % 2, "{\"name\":\"older\",\"mode\":\"test\"}", &key);
        memcpy(older[i], key.id, sizeof key.id);
    }
    do {
        snprintf(target, sizeof target, "/v1/api_keys?limit=%d&mode=test%s%s", PAGE, *last ? "&starting_after=" : "",
                 last);
        ask(&fixture, pages % 2, "GET", target, fixture.manager.secret, NULL, &answer);
        count_page(&answer, older, seen, last);
        for (size_t i = 0; i < 3; i++)
            fixture_create_key(&fixture, i % 2, "{\"name\":\"newer\",\"mode\":\"test\"}", &key);
        cr_assert_lt(++pages, 20, "the walk does not end");
    } while (strcmp(json_of(&answer, "has_more"), "true") == 0);
    for (size_t i = 0; i < OLDER_KEYS; i++)
        cr_expect_eq(seen[i], 1, "key %zu was shown %u times", i, seen[i]);
    fixture_stop(&fixture);
}

Test(keys, ending_before_walks_back_to_the_newest)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key keys[5];
    char target[128];

    fixture_start(&fixture, 1, NULL);
    for (size_t i = 0; i < 5; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"test\"}", &keys[i]);
    snprintf(target, sizeof target, "/v1/api_keys?mode=test&limit=2&ending_before=%s", keys[1].id);
    ask(&fixture, 0, "GET", target, fixture.manager.secret, NULL, &answer);
    cr_assert_eq(answer.status, 200);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
    cr_expect_str_eq(json_of(&answer, "data.0.id"), keys[3].id, "the two just newer, newest first");
    cr_expect_str_eq(json_of(&answer, "data.1.id"), keys[2].id);
    cr_expect_str_eq(json_of(&answer, "has_more"), "true");
    fixture_stop(&fixture);
}

Test(keys, filters_by_mode_and_status)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key keys[6];

    fixture_start(&fixture, 1, NULL);
    for (size_t i = 0; i < 6; i++) {
        char path[64];

        fixture_create_key(
            &fixture, 0, i % 2 ? "{\"name\":\"a\",\"mode\":\"test\"}" : "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
        key_path(&keys[i], path);
        if (i < 2)
            ask(&fixture, 0, "DELETE", path, fixture.manager.secret, NULL, &answer);
    }
    ask(&fixture, 0, "GET", "/v1/api_keys?mode=test&status=active", fixture.manager.secret, NULL, &answer);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
    cr_expect_str_eq(json_of(&answer, "data.0.id"), keys[5].id);
    ask(&fixture, 0, "GET", "/v1/api_keys?status=revoked", fixture.manager.secret, NULL, &answer);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 2);
    cr_expect_str_eq(json_of(&answer, "data.0.id"), keys[1].id);
    cr_expect_str_eq(json_of(&answer, "has_more"), "false");
    ask(&fixture, 0, "GET", "/v1/api_keys?status=active&mode=live&limit=1", fixture.manager.secret, NULL, &answer);
    cr_expect_str_eq(json_of(&answer, "data.0.id"), keys[4].id);
    cr_expect_str_eq(json_of(&answer, "has_more"), "true");
    fixture_stop(&fixture);
}

/* Waits for the flush of usage; "null" or an older time until then. */
static void await_last_used(const struct fixture *fixture, size_t node, const struct fixture_key *key,
                            const char *older_than, char ret_time[TEXT_BYTES])
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;
    char path[64];

    key_path(key, path);
    do {
        ask(fixture, node, "GET", path, fixture->manager.secret, NULL, &answer);
        snprintf(ret_time, TEXT_BYTES, "%s", json_of(&answer, "last_used_at"));
        if (strcmp(ret_time, "null") != 0 && strcmp(ret_time, older_than) > 0)
            return;
        poll(NULL, 0, 20);
    } while (deadline_left_ms(deadline) > 0);
    cr_assert_fail("last_used_at does not move: %s", ret_time);
}

Test(keys, last_used_at_moves_never_goes_back_and_survives_a_restart)
{
    static const char *const MORE[] = {"--usage-flush-ms", "100", NULL};
    char first[TEXT_BYTES], second[TEXT_BYTES], third[TEXT_BYTES];
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 2, MORE);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    fixture_try_key(&fixture, 0, key.secret);
    await_last_used(&fixture, 1, &key, "", first);
    fixture_try_key(&fixture, 1, key.secret);
    await_last_used(&fixture, 0, &key, first, second);

    node_stop(&fixture.nodes[0]);
    redis_server_restart(&fixture.redis);
    fixture_start_node(&fixture, 0, "again", fixture.redis.url, MORE);
    await_last_used(&fixture, 0, &key, first, third);
    cr_expect_str_eq(third, second);
    fixture_stop(&fixture);
}

Test(keys, a_use_just_before_sigterm_is_flushed)
{
    static const char *const MORE[] = {"--usage-flush-ms", "60000", NULL};
    char when[TEXT_BYTES];
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 2, MORE);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    cr_assert_eq(fixture_try_key(&fixture, 0, key.secret), 200);
    node_stop(&fixture.nodes[0]);
    await_last_used(&fixture, 1, &key, "", when);
    fixture_stop(&fixture);
}

Test(keys, an_acknowledged_key_and_revocation_survive_the_crash_of_everything)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key kept, revoked;
    char path[64];

    fixture_start(&fixture, 1, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"kept\",\"mode\":\"live\"}", &kept);
    fixture_create_key(&fixture, 0, "{\"name\":\"revoked\",\"mode\":\"live\"}", &revoked);
    key_path(&revoked, path);
    ask(&fixture, 0, "DELETE", path, fixture.manager.secret, NULL, &answer);
    cr_assert_eq(answer.status, 200);
    redis_server_kill(&fixture.redis);
    node_kill(&fixture.nodes[0]);
    redis_server_restart(&fixture.redis);
    fixture_start_node(&fixture, 0, "again", fixture.redis.url, NULL);
    cr_expect_eq(fixture_try_key(&fixture, 0, kept.secret), 200);
    ask(&fixture, 0, "GET", "/v1/whoami", revoked.secret, NULL, &answer);
    cr_expect_eq(answer.status, 401);
    cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked");
    fixture_stop(&fixture);
}

/* Whether any Redis has written that. */
static bool is_stored(const struct fixture *fixture, const char *text)
{
    char aof_path[PROCESS_PATH_BYTES + 64];
    bool is_there = false;

    for (const struct redis_server *server = &fixture->redis; server; server = server->next) {
        snprintf(aof_path, sizeof aof_path, "%s/appendonlydir/appendonly.aof.1.incr.aof", server->folder);
        is_there |= file_contains(aof_path, text);
    }
    return is_there;
}

Test(keys, neither_the_store_nor_the_log_holds_a_secret)
{
    static const char *const MORE[] = {"--log-level", "debug", NULL};
    struct fixture fixture;
    struct fixture_session session;
    struct http_answer answer;
    struct fixture_key key;

    fixture_start(&fixture, 1, MORE);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    cr_assert_eq(fixture_try_key(&fixture, 0, key.secret), 200);
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_call(&fixture, 0, &(struct http_call){.target = "/v1/console/session", .cookie = session.token}, &answer);
    cr_assert_eq(answer.status, 200);
    cr_expect(is_stored(&fixture, key.id), "this looks at the wrong files");
    cr_expect_not(is_stored(&fixture, key.secret));
    cr_expect_not(is_stored(&fixture, session.token));
    cr_expect(file_contains(fixture.nodes[0].process.err_path, "node serves"), "this looks at the wrong log");
    cr_expect_not(file_contains(fixture.nodes[0].process.err_path, key.secret));
    cr_expect_not(file_contains(fixture.nodes[0].process.err_path, session.token));
    cr_expect_not(file_contains(fixture.nodes[0].process.err_path, session.csrf));
    fixture_stop(&fixture);
}
