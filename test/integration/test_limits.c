/* What one tenant may make, counted over all nodes. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(limits, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define TEST_KEY "{\"name\":\"n\",\"mode\":\"test\"}"
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

/* How many requests a flood has: enough for the small bound here, or as many as a person wants to see. */
static size_t flood_size(void)
{
    enum { FLOOD = 450 };
    const char *wanted = getenv("CHATELAINE_TEST_FLOOD");

    return wanted ? strtoul(wanted, NULL, 10) : FLOOD;
}

Test(limits, a_flood_of_test_keys_and_refusals_pushes_nothing_out_of_the_trail)
{
    struct fixture_key leaked, live, first, narrow;
    struct fixture_session session;
    struct http_answer answer;
    struct http_client client;
    struct fixture fixture;

    fixture_start(
        &fixture, 1,
        (const char *const[]){"--audit-max", "100", "--changes-per-minute", "1000000", "--keys-max", "1000000", NULL});
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &leaked);
    fixture_create_key(&fixture, 0, LIVE_KEY, &live);
    fixture_create_key(&fixture, 0, TEST_KEY, &first);
    http_client_connect(&client, fixture.nodes[0].port);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &narrow);
    for (size_t i = 0; i < flood_size(); i++) {
        http_client_call(
            &client,
            &(struct http_call){.method = "POST", .target = "/v1/api_keys", .bearer = leaked.secret, .json = TEST_KEY},
            &answer);
        cr_assert_eq(answer.status, 201, "%s", answer.body);
        http_client_call(&client, &(struct http_call){.target = "/v1/api_keys", .bearer = narrow.secret}, &answer);
        cr_assert_eq(answer.status, 403, "%s", answer.body);
    }
    http_client_close(&client);
    cr_expect_not(trail_has(&fixture, &session, "api_key.created", first.id), "there was no flood");
    cr_expect(trail_has(&fixture, &session, "api_key.created", live.id));
    cr_expect(trail_has(&fixture, &session, "user.created", fixture.user.id));
    cr_expect(trail_has(&fixture, &session, "requests.refused", narrow.id));
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
