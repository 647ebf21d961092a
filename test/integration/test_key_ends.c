/* Revocations that are scheduled: kept by every node without being told when the time has come, never late, whatever
 * the clocks of nodes and Redis say; and keys that are replaced. */
#include "base/clock.h"
#include "clock_file.h"
#include "fixture.h"
#include "leak_guard.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(key_ends, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, STEP_MS = 5, LAST_MOMENT_MS = 20, EARLY_MS = 200, S = 1000, DAY_MS = 24 * 60 * 60 * S };
enum { JSON_BYTES = 64 };

static struct fixture f;

static void start(void)
{
    fixture_start(&f, NODES, NULL);
}

static int call(const char *method, const struct fixture_key *key, const char *what, const char *json,
                struct http_answer *answer)
{
    char target[128];

    snprintf(target, sizeof target, "/v1/api_keys/%s%s", key->id, what);
    return fixture_call(
        &f, 0, &(struct http_call){.method = method, .target = target, .bearer = f.manager.secret, .json = json},
        answer);
}

static void print_end(int64_t at_ms, char ret_json[JSON_BYTES])
{
    char at[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(at_ms, at);
    snprintf(ret_json, JSON_BYTES, "{\"revoke_at\":\"%s\"}", at);
}

static int try_end(const struct fixture_key *key, int64_t at_ms, struct http_answer *answer)
{
    char json[JSON_BYTES];

    print_end(at_ms, json);
    return call("PUT", key, "/scheduled_revocation", json, answer);
}

/* 503 says that it may have been done or not; again is the same. Returns another status as soon as there is one. */
static int insist_on_end(const struct fixture_key *key, int64_t at_ms, struct http_answer *answer)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (try_end(key, at_ms, answer) == 503) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer->body);
        poll(NULL, 0, STEP_MS);
    }
    return answer->status;
}

static void set_end(const struct fixture_key *key, int64_t at_ms)
{
    struct http_answer answer;

    cr_assert_eq(insist_on_end(key, at_ms, &answer), 200, "%s", answer.body);
}

static void expect_value(const struct http_answer *answer, const char *path, const char *wanted)
{
    char value[128] = "(none)";

    (void)http_answer_json(answer, path, value, sizeof value);
    cr_expect_str_eq(value, wanted, "%s in %s", path, answer->body);
}

static void expect_time(const struct http_answer *answer, const char *path, int64_t wanted_ms)
{
    char wanted[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(wanted_ms, wanted);
    expect_value(answer, path, wanted);
}

static void make_key(struct fixture_key *key)
{
    watched_keys_create(&(struct watched_keys){.fixture = &f}, 0,
                        "{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", key);
}

/* Redis' time, which no node's clock is. */
static int64_t redis_ms(void)
{
    char reply[64], *rest;
    int64_t seconds;

    redis_server_ask(&f.redis, reply, sizeof reply, "TIME", NULL);
    seconds = strtoll(reply, &rest, 10);
    return seconds * S + strtoll(rest, NULL, 10) / S;
}

/* That far ahead, or farther if that has passed before the node reads it. Returns the time. */
static int64_t set_end_soon(const struct fixture_key *key, int64_t ahead_ms)
{
    struct http_answer answer;
    int64_t at_ms = redis_ms() + ahead_ms;

    while (insist_on_end(key, at_ms, &answer) == 400) {
        cr_assert_lt(ahead_ms, PATIENCE_MS, "%s", answer.body);
        ahead_ms *= 2;
        at_ms = redis_ms() + ahead_ms;
    }
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    return at_ms;
}

/* Checks through all nodes until the key is refused: a check that began after at_ms is not accepted, and one that was
 * answered EARLY_MS before it is not refused. Then waits for that time: until then the key is still shown as active. */
static void expect_end(const struct fixture_key *key, int64_t at_ms)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_over[NODES] = {false};

    while (!is_over[0] || !is_over[1]) {
        for (size_t node = 0; node < NODES; node++) {
            int64_t before_ms = redis_ms();
            int status = fixture_try_key(&f, node, key->secret);
            int64_t after_ms = redis_ms();

            if (status == 503)
                continue;
            cr_assert(status == 200 || status == 401, "%d", status);
            cr_expect_not(status == 200 && before_ms >= at_ms, "node %zu: late by %lld ms", node,
                          (long long)(before_ms - at_ms));
            cr_expect_not(status == 401 && after_ms < at_ms - EARLY_MS, "node %zu: early by %lld ms", node,
                          (long long)(at_ms - after_ms));
            is_over[node] = status == 401;
        }
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, STEP_MS);
    }
    while (redis_ms() < at_ms)
        poll(NULL, 0, STEP_MS);
}

static void await_event(const char *type, const char *reason)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    static char reply[64 * 1024];

    do {
        char name[128];

        snprintf(name, sizeof name, "acct:%s:audit:live", f.account);
        redis_server_ask(&f.redis, reply, sizeof reply, "XRANGE", fixture_name(f.account, name), "-", "+", NULL);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", reply);
        poll(NULL, 0, STEP_MS);
    } while (!strstr(reply, type) || !strstr(reply, reason));
}

/* Nothing else has happened to live keys since, so the trail has the time itself, not when a node wrote it down. */
static void expect_event_at(const struct fixture_key *key, int64_t at_ms)
{
    struct http_answer answer;
    char target[128];

    snprintf(target, sizeof target, "/v1/audit?type=api_key.revoked&target=%s", key->id);
    struct http_call get = {.target = target, .bearer = f.manager.secret};
    cr_assert_eq(fixture_call(&f, 0, &get, &answer), 200, "%s", answer.body);
    expect_time(&answer, "data.0.created_at", at_ms);
}

Test(key_ends, a_key_ends_at_its_time_on_every_node)
{
    struct http_answer answer;
    struct fixture_key key;
    int64_t at_ms;

    start();
    make_key(&key);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, key.secret, 200);
    at_ms = set_end_soon(&key, 4 * S);
    cr_assert_eq(call("GET", &key, "/scheduled_revocation", NULL, &answer), 200);
    expect_value(&answer, "id", key.id);
    expect_time(&answer, "revoke_at", at_ms);
    expect_value(&answer, "revoked_at", "null");
    cr_assert_eq(call("GET", &key, "", NULL, &answer), 200);
    expect_value(&answer, "revoked_at", "null");
    expect_end(&key, at_ms);
    cr_assert_eq(call("GET", &key, "", NULL, &answer), 200);
    expect_time(&answer, "revoked_at", at_ms);
    await_event("api_key.revoked", "scheduled");
    expect_event_at(&key, at_ms);
    cr_expect_eq(fixture_sum(&f, "ZCARD", "key_ends"), 0);
    cr_assert_eq(try_end(&key, at_ms + 10 * S, &answer), 409);
    cr_expect_str_eq(http_answer_code(&answer), "already_revoked");
    cr_assert_eq(call("DELETE", &key, "", NULL, &answer), 200);
    expect_time(&answer, "revoked_at", at_ms);
    fixture_stop(&f);
}

/* It is remembered as any other key until it ends soon, and then read. */
Test(key_ends, a_key_that_ends_in_a_year_is_remembered_and_one_that_ends_soon_is_not)
{
    struct fixture_key far, soon;
    long hits;

    start();
    make_key(&far);
    make_key(&soon);
    set_end(&far, redis_ms() + 365LL * DAY_MS);
    set_end(&soon, redis_ms() + 60 * S);
    fixture_await_key(&f, 1, far.secret, 200);
    hits = fixture_metric(&f, 1, "chatelaine_cache_lookups_total{result=\"hit\"}");
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(fixture_try_key(&f, 1, soon.secret), 200);
    cr_expect_eq(fixture_metric(&f, 1, "chatelaine_cache_lookups_total{result=\"hit\"}"), hits);
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(fixture_try_key(&f, 1, far.secret), 200);
    cr_expect_gt(fixture_metric(&f, 1, "chatelaine_cache_lookups_total{result=\"hit\"}"), hits);
    fixture_stop(&f);
}

Test(key_ends, a_key_can_say_sooner_but_not_later_or_never)
{
    struct http_answer answer;
    struct fixture_key key;
    int64_t now_ms;

    start();
    make_key(&key);
    now_ms = redis_ms();
    cr_expect_eq(call("GET", &key, "/scheduled_revocation", NULL, &answer), 200);
    expect_value(&answer, "revoke_at", "null");
    cr_expect_eq(call("DELETE", &key, "/scheduled_revocation", NULL, &answer), 200, "there is nothing to withdraw");
    set_end(&key, now_ms + 5000 * S);
    set_end(&key, now_ms + 4000 * S);
    set_end(&key, now_ms + 4000 * S);
    cr_expect_eq(try_end(&key, now_ms + 4001 * S, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "delay_not_permitted");
    cr_expect_eq(call("DELETE", &key, "/scheduled_revocation", NULL, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "delay_not_permitted");
    cr_expect_eq(try_end(&key, now_ms - S, &answer), 400);
    cr_expect_eq(try_end(&key, now_ms + 401LL * DAY_MS, &answer), 400);
    cr_expect_eq(call("PUT", &key, "/scheduled_revocation", "{\"revoke_at\":\"tomorrow\"}", &answer), 400);
    cr_expect_eq(call("PUT", &key, "/scheduled_revocation", "{\"revoke_at\":7}", &answer), 400);
    cr_expect_eq(call("PUT", &key, "/scheduled_revocation", "{}", &answer), 400);
    cr_expect_eq(call("GET", &key, "/scheduled_revocation", NULL, &answer), 200);
    expect_time(&answer, "revoke_at", now_ms + 4000 * S);
    cr_expect_eq(fixture_try_key(&f, 1, key.secret), 200);
    cr_assert_eq(call("DELETE", &key, "", NULL, &answer), 200);
    cr_expect_eq(fixture_try_key(&f, 1, key.secret), 401);
    cr_expect_eq(fixture_sum(&f, "ZCARD", "key_ends"), 0);
    fixture_stop(&f);
}

static int call_console(const struct fixture_session *session, const char *method, const struct fixture_key *key,
                        const char *json, struct http_answer *answer)
{
    char target[128];

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key->id);
    return fixture_call(
        &f, 0,
        &(struct http_call){
            .method = method, .target = target, .cookie = session->token, .csrf = session->csrf, .json = json},
        answer);
}

Test(key_ends, people_who_have_confirmed_can_say_later_or_never)
{
    struct http_answer answer;
    struct fixture_session plain, confirmed;
    char sooner[JSON_BYTES], later[JSON_BYTES];
    struct fixture_key key;
    int64_t later_ms;

    start();
    make_key(&key);
    later_ms = redis_ms() + 60LL * DAY_MS;
    print_end(later_ms - 30LL * DAY_MS, sooner);
    print_end(later_ms, later);
    fixture_add_session(&f, &f.user, false, &plain);
    fixture_add_session(&f, &f.user, true, &confirmed);
    cr_expect_eq(call_console(&plain, "PUT", &key, sooner, &answer), 200);
    cr_expect_eq(call_console(&plain, "PUT", &key, later, &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "step_up_required");
    cr_expect_eq(call_console(&plain, "DELETE", &key, NULL, &answer), 403);
    cr_expect_eq(call_console(&confirmed, "PUT", &key, later, &answer), 200, "%s", answer.body);
    expect_time(&answer, "revoke_at", later_ms);
    cr_expect_eq(call_console(&confirmed, "DELETE", &key, NULL, &answer), 200, "%s", answer.body);
    expect_value(&answer, "revoke_at", "null");
    cr_expect_eq(fixture_sum(&f, "ZCARD", "key_ends"), 0);
    fixture_stop(&f);
}

Test(key_ends, a_replacement_takes_over)
{
    struct http_answer answer;
    struct fixture_key key, other;
    char secret[128], id[64], at[64];
    int64_t began_ms, ended_ms, at_ms;

    start();
    make_key(&key);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, key.secret, 200);
    began_ms = redis_ms();
    cr_assert_eq(call("POST", &key, "/replacement", "{\"overlap_seconds\":90}", &answer), 201, "%s", answer.body);
    ended_ms = redis_ms();
    cr_assert(http_answer_json(&answer, "secret", secret, sizeof secret));
    cr_assert(http_answer_json(&answer, "id", id, sizeof id));
    expect_value(&answer, "scopes", "patients:read");
    expect_value(&answer, "name", "a");
    cr_expect_str_neq(id, key.id);
    cr_assert_eq(call("GET", &key, "/scheduled_revocation", NULL, &answer), 200);
    cr_assert(http_answer_json(&answer, "revoke_at", at, sizeof at) && clock_read_rfc3339(text_of(at), &at_ms));
    cr_expect(at_ms >= began_ms + 90 * S && at_ms <= ended_ms + 90 * S);
    cr_expect_eq(fixture_try_key(&f, 1, secret), 200);
    fixture_await_in_use(&f, f.account, id);
    cr_expect_eq(fixture_try_key(&f, 1, key.secret), 200, "both work until then");
    cr_expect_eq(call("POST", &key, "/replacement", "{\"overlap_seconds\":90}", &answer), 409);
    cr_expect_str_eq(http_answer_code(&answer), "already_replaced");
    cr_expect_not_null(strstr(answer.body, id));
    at_ms = set_end_soon(&key, 4 * S);
    expect_end(&key, at_ms);
    cr_expect_eq(fixture_try_key(&f, 1, secret), 200);
    cr_expect_eq(call("POST", &key, "/replacement", "{\"overlap_seconds\":2}", &answer), 409);
    cr_expect_str_eq(http_answer_code(&answer), "already_revoked");

    make_key(&other);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, other.secret, 200);
    cr_assert_eq(call("POST", &other, "/replacement", "{\"overlap_seconds\":0,\"name\":\"b\"}", &answer), 201);
    expect_value(&answer, "name", "b");
    cr_assert(http_answer_json(&answer, "secret", secret, sizeof secret));
    for (size_t node = 0; node < NODES; node++)
        cr_expect_eq(fixture_try_key(&f, node, other.secret), 200, "nobody knows yet that the new one has arrived");
    cr_expect_eq(fixture_try_key(&f, 1, secret), 200);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, other.secret, 401);
    await_event("api_key.revoked", "replaced");
    cr_expect_eq(fixture_try_key(&f, 0, secret), 200);
    make_key(&other);
    cr_expect_eq(call("POST", &other, "/replacement", "{\"overlap_seconds\":2592001}", &answer), 400);
    cr_expect_eq(call("POST", &other, "/replacement", "{\"overlap_seconds\":-1}", &answer), 400);
    cr_expect_eq(call("POST", &other, "/replacement", "{\"overlap_seconds\":1.5}", &answer), 400);
    cr_expect_eq(call("POST", &other, "/replacement", "{}", &answer), 400);
    fixture_stop(&f);
}

/* The new key has some of the scopes, never more. */
Test(key_ends, a_replacement_may_have_fewer_scopes)
{
    static const char *const WRONG[] = {"[]", "[\"patients\"]", "\"patients:read\"", "[7]"};
    struct http_answer answer;
    struct fixture_key key;
    char json[128];

    start();
    fixture_create_key(&f, 0, "{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\",\"usage:read\"]}", &key);
    cr_expect_eq(
        call("POST", &key, "/replacement", "{\"overlap_seconds\":90,\"scopes\":[\"patients:write\"]}", &answer), 403);
    cr_expect_str_eq(http_answer_code(&answer), "scope_not_grantable");
    cr_expect_not_null(strstr(answer.body, "patients:write"), "%s", answer.body);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        snprintf(json, sizeof json, "{\"overlap_seconds\":90,\"scopes\":%s}", WRONG[i]);
        cr_expect_eq(call("POST", &key, "/replacement", json, &answer), 400, "%s", json);
        expect_value(&answer, "error.param", "scopes");
    }
    cr_assert_eq(call("POST", &key, "/replacement", "{\"overlap_seconds\":90,\"scopes\":[\"patients:read\"]}", &answer),
                 201);
    cr_expect_not_null(strstr(answer.body, "\"scopes\":[\"patients:read\"]"), "%s", answer.body);
    fixture_stop(&f);
}

/* Clocks */

/* Its wall clock is that many seconds ahead, and its other clocks run at that many percent of their speed. */
static void read_secret(const struct http_answer *answer, struct fixture_key *ret_key)
{
    cr_assert_eq(answer->status, 201, "%s", answer->body);
    cr_assert(http_answer_json(answer, "id", ret_key->id, sizeof ret_key->id) &&
              http_answer_json(answer, "secret", ret_key->secret, sizeof ret_key->secret));
}

/* at_ms: 0 for never. */
static void expect_shown_end(const struct fixture_key *key, int64_t at_ms)
{
    struct http_answer answer;

    cr_expect_eq(call("GET", key, "/scheduled_revocation", NULL, &answer), 200, "%s", answer.body);
    if (at_ms)
        expect_time(&answer, "revoke_at", at_ms);
    else
        expect_value(&answer, "revoke_at", "null");
}

/* What a key with an end makes has no later one, whether it makes it or replaces itself by it. */
Test(key_ends, an_end_is_handed_on)
{
    struct http_answer answer;
    struct fixture_key key, child, successor;
    struct fixture_session session;
    char target[96];

    start();
    fixture_create_key(&f, 0, "{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}", &key);
    const int64_t at_ms = redis_ms() + DAY_MS;
    set_end(&key, at_ms);
    struct http_call create = {.method = "POST",
                               .target = "/v1/api_keys",
                               .bearer = key.secret,
                               .json = "{\"name\":\"b\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}"};
    fixture_call(&f, 0, &create, &answer);
    read_secret(&answer, &child);
    expect_shown_end(&child, at_ms);
    snprintf(target, sizeof target, "/v1/api_keys/%s/replacement", child.id);
    create.target = target;
    create.bearer = child.secret;
    create.json = "{\"overlap_seconds\":2592000}";
    fixture_call(&f, 1, &create, &answer);
    read_secret(&answer, &successor);
    expect_shown_end(&successor, at_ms);
    /* People may say later or never. */
    fixture_add_session(&f, NULL, true, &session);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/replacement", successor.id);
    fixture_call(&f, 0,
                 &(struct http_call){.method = "POST",
                                     .target = target,
                                     .cookie = session.token,
                                     .csrf = session.csrf,
                                     .json = "{\"overlap_seconds\":0}"},
                 &answer);
    read_secret(&answer, &key);
    expect_shown_end(&key, 0);
    fixture_stop(&f);
}

Test(key_ends, clocks_of_nodes_do_not_matter)
{
    struct http_answer answer;
    struct clock_file fast, slow;
    struct fixture_key key;
    int64_t at_ms;

    fixture_start(&f, 0, NULL);
    fixture_add_node_with_clock(&f, &fast, 18000, "110");
    fixture_add_node_with_clock(&f, &slow, -10800, "90");
    make_key(&key);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, key.secret, 200);
    at_ms = set_end_soon(&key, 3 * S);
    expect_end(&key, at_ms);
    await_event("api_key.revoked", "scheduled");
    cr_assert_eq(call("GET", &key, "", NULL, &answer), 200, "%s", answer.body);
    fixture_stop(&f);
    clock_file_remove(&fast);
    clock_file_remove(&slow);
}

/* A process that wakes after the time has come knows that it does not know. */
Test(key_ends, a_node_that_was_paused_accepts_nothing_late)
{
    struct fixture_key key;
    int64_t at_ms;

    start();
    make_key(&key);
    fixture_await_key(&f, 1, key.secret, 200);
    at_ms = set_end_soon(&key, S);
    process_signal(&f.nodes[1].process, SIGSTOP);
    while (redis_ms() < at_ms)
        poll(NULL, 0, STEP_MS);
    process_signal(&f.nodes[1].process, SIGCONT);
    fixture_await_key(&f, 1, key.secret, 401);
    fixture_stop(&f);
}
