/* What one tenant may make, counted over all nodes. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(limits, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define TEST_KEY "{\"name\":\"n\",\"mode\":\"test\"}"
#define NARROW_KEY "{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[\"patients:read\"]}"
#define LIVE_KEY "{\"name\":\"n\",\"mode\":\"live\"}"

static int create(const struct fixture *fixture, size_t node, const char *bearer, const char *json,
                  struct http_answer *ret_answer)
{
    return fixture_call(fixture, node,
                        &(struct http_call){.method = "POST", .target = "/v1/api_keys", .bearer = bearer, .json = json},
                        ret_answer);
}

static int revoke(const struct fixture *fixture, size_t node, const char *id)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", id);
    return fixture_call(fixture, node,
                        &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture->manager.secret},
                        &answer);
}

Test(limits, an_account_has_so_many_active_keys)
{
    struct fixture_key made;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 2, (const char *const[]){"--keys-max", "3", NULL}); /* one is the manager */
    fixture_create_key(&fixture, 0, LIVE_KEY, &made);
    cr_expect_eq(create(&fixture, 1, fixture.manager.secret, LIVE_KEY, &answer), 201);
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(create(&fixture, node, fixture.manager.secret, LIVE_KEY, &answer), 409, "%s", answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "key_limit_reached");
    }
    cr_expect_eq(revoke(&fixture, 0, made.id), 200);
    cr_expect_eq(create(&fixture, 1, fixture.manager.secret, LIVE_KEY, &answer), 201);
    cr_expect_eq(create(&fixture, 0, fixture.manager.secret, TEST_KEY, &answer), 409);
    fixture_stop(&fixture);
}

/* Whether the trail holds an event of that type and target, on any page. */
static bool trail_has(const struct fixture *fixture, const struct fixture_session *session, const char *type,
                      const char *target)
{
    char path[128], value[64], after[64] = "", more[8] = "true";
    struct http_answer answer;
    bool found = false;

    while (strcmp(more, "true") == 0 && !found) {
        snprintf(path, sizeof path, "/v1/console/audit_events?limit=100%s%s", after[0] ? "&starting_after=" : "",
                 after);
        cr_assert_eq(fixture_call(fixture, 0, &(struct http_call){.target = path, .cookie = session->token}, &answer),
                     200);
        for (int i = 0; i < http_answer_json_count(&answer, "data") && !found; i++) {
            snprintf(path, sizeof path, "data.%d.type", i);
            found = http_answer_json(&answer, path, value, sizeof value) && strcmp(value, type) == 0;
            snprintf(path, sizeof path, "data.%d.target", i);
            found = found && http_answer_json(&answer, path, value, sizeof value) && strcmp(value, target) == 0;
            snprintf(path, sizeof path, "data.%d.id", i);
            cr_assert(http_answer_json(&answer, path, after, sizeof after));
        }
        cr_assert(http_answer_json(&answer, "has_more", more, sizeof more));
    }
    return found;
}

/* How many keys a flood creates: enough for the small bound here, or as many as scripts/flood wants. */
static size_t flood_size(void)
{
    enum { FLOOD = 450 };
    const char *wanted = getenv("CHATELAINE_TEST_FLOOD");

    return wanted ? strtoul(wanted, NULL, 10) : FLOOD;
}

enum { FLOOD_CONNECTIONS = 25, FLOOD_WITHIN_S = 3600 };

struct flood {
    struct http_client clients[FLOOD_CONNECTIONS];
    struct fixture_key made[FLOOD_CONNECTIONS];
    const char *maker; /* the secret of a leaked test key */
};

/* Each connection creates a test key. */
static void flood_with_keys(struct flood *flood)
{
    struct http_answer answer;

    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++)
        http_client_send_call(&flood->clients[i], &(struct http_call){.method = "POST",
                                                                      .target = "/v1/api_keys",
                                                                      .bearer = flood->maker,
                                                                      .json = NARROW_KEY});
    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++) {
        cr_assert_eq(http_client_read(&flood->clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        cr_assert_eq(answer.status, 201, "%s", answer.body);
        cr_assert(http_answer_json(&answer, "id", flood->made[i].id, sizeof flood->made[i].id));
        cr_assert(http_answer_json(&answer, "secret", flood->made[i].secret, sizeof flood->made[i].secret));
    }
}

/* The first refusal of a key is an event of its own, so each connection uses the key that it has created. */
static void flood_with_refusals(struct flood *flood)
{
    struct http_answer answer;

    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++)
        http_client_send_call(&flood->clients[i],
                              &(struct http_call){.target = "/v1/api_keys", .bearer = flood->made[i].secret});
    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++) {
        cr_assert_eq(http_client_read(&flood->clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        cr_assert_eq(answer.status, 403, "%s", answer.body);
    }
}

/* Refusals are written after they were answered. */
static void await_refusal(const struct fixture *fixture, const struct fixture_session *session,
                          const struct fixture_key *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!trail_has(fixture, session, "requests.refused", key->id)) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 20);
    }
}

/* Returns the first key that was refused. */
static struct fixture_key flood_run(const struct fixture *fixture, const struct fixture_session *session,
                                    const char *maker)
{
    static struct flood flood;
    struct fixture_key first = {0};

    flood.maker = maker;
    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++)
        http_client_connect(&flood.clients[i], fixture->nodes[0].port);
    for (size_t made = 0; made < flood_size(); made += FLOOD_CONNECTIONS) {
        flood_with_keys(&flood);
        flood_with_refusals(&flood);
        if (made > 0)
            continue;
        first = flood.made[0];
        await_refusal(fixture, session, &first);
    }
    await_refusal(fixture, session, &flood.made[FLOOD_CONNECTIONS - 1]);
    for (size_t i = 0; i < FLOOD_CONNECTIONS; i++)
        http_client_close(&flood.clients[i]);
    return first;
}

Test(limits, a_flood_of_test_keys_and_refusals_pushes_nothing_else_out_of_the_trail, .timeout = FLOOD_WITHIN_S)
{
    struct fixture_key leaked, live, refused;
    struct fixture_session session;
    struct fixture fixture;

    fixture_start(&fixture, 1,
                  (const char *const[]){"--audit-max", "100", "--changes-per-minute", "1000000", "--keys-max",
                                        "1000000", "--usage-flush-ms", "20", NULL});
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &leaked);
    fixture_create_key(&fixture, 0, LIVE_KEY, &live);
    refused = flood_run(&fixture, &session, leaked.secret);
    cr_expect_not(trail_has(&fixture, &session, "api_key.created", refused.id), "there was no flood of keys");
    cr_expect_not(trail_has(&fixture, &session, "requests.refused", refused.id), "there was no flood of refusals");
    cr_expect(trail_has(&fixture, &session, "api_key.created", live.id));
    cr_expect(trail_has(&fixture, &session, "user.created", fixture.user.id));
    cr_expect(trail_has(&fixture, &session, "session.created", fixture.user.id));
    fixture_stop(&fixture);
}

Test(limits, a_key_makes_so_many_changes_a_minute_and_revokes_without_end)
{
    struct fixture_key made[4], other;
    struct http_answer answer;
    struct fixture fixture;
    char seconds[16];

    fixture_start(&fixture, 2, (const char *const[]){"--changes-per-minute", "4", NULL});
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &other);
    for (size_t i = 0; i < 4; i++)
        fixture_create_key(&fixture, i % 2, LIVE_KEY, &made[i]);
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(create(&fixture, node, fixture.manager.secret, LIVE_KEY, &answer), 429, "%s", answer.body);
        cr_expect(http_answer_field(&answer, "Retry-After", seconds, sizeof seconds));
        cr_expect(strtol(seconds, NULL, 10) >= 1 && strtol(seconds, NULL, 10) <= 60, "%s", seconds);
    }
    cr_expect_eq(create(&fixture, 0, other.secret, LIVE_KEY, &answer), 201, "another key");
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(revoke(&fixture, 0, made[i].id), 200);
    fixture_stop(&fixture);
}
