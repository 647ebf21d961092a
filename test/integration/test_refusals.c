/* Refusals leave a trace: a line in the log, counts beside those of accepted requests, and an event where a revoked key
 * is still used; a flood of them leaves few lines and one event. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(refusals, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { FLOOD = 10000, PAUSE_S = 5 };

static const char *const SOON[] = {"--usage-flush-ms", "20", NULL};

/* How many lines have both texts. */
static int count_lines(const struct node *node, const char *a, const char *b)
{
    char *log = node_log(node), *rest = log, *line;
    int count = 0;

    while ((line = strsep(&rest, "\n")) != NULL)
        count += strstr(line, a) && strstr(line, b);
    free(log);
    return count;
}

static void expect_line(const struct node *node, const char *reason, const char *wanted)
{
    char field[80];

    snprintf(field, sizeof field, "message=\"request refused\" reason=%s ", reason);
    cr_expect_eq(count_lines(node, field, wanted), 1, "no line, or several, with %s and %s", field, wanted);
}

/* The value at a path of GET target by a session, until it is the wanted one. */
static void expect_within(int ms, const struct fixture *fixture, const struct fixture_session *session,
                          const char *target, const char *path, const char *wanted)
{
    struct http_answer answer;
    struct deadline deadline = deadline_in(ms);
    char got[80] = "";

    do {
        fixture_call(fixture, 0, &(struct http_call){.target = target, .cookie = session->token}, &answer);
        http_answer_json(&answer, path, got, sizeof got);
    } while (strcmp(got, wanted) != 0 && deadline_left_ms(deadline) > 0);
    cr_expect_str_eq(got, wanted, "%s %s: %s, not %s", target, path, got, wanted);
}

static void expect_soon(const struct fixture *fixture, const struct fixture_session *session, const char *target,
                        const char *path, const char *wanted)
{
    expect_within(PATIENCE_MS, fixture, session, target, path, wanted);
}

/* Until so many requests of that mode are counted as refused, today or, after midnight, yesterday. */
static void await_refused(const struct fixture *fixture, const struct fixture_session *session, const char *mode,
                          int wanted)
{
    struct http_call call = {.target = "/v1/console/usage?days=2", .cookie = session->token};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int refused;

    do {
        struct http_answer answer;

        fixture_call(fixture, 0, &call, &answer);
        refused = 0;
        for (int i = 0; i < http_answer_json_count(&answer, "data"); i++) {
            char path[40], got[64] = "";

            snprintf(path, sizeof path, "data.%d.mode", i);
            http_answer_json(&answer, path, got, sizeof got);
            if (strcmp(got, mode) != 0)
                continue;
            snprintf(path, sizeof path, "data.%d.refused", i);
            http_answer_json(&answer, path, got, sizeof got);
            refused += (int)strtol(got, NULL, 10);
        }
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s: %d, not %d", mode, refused, wanted);
    } while (refused != wanted);
}

static int count_events(const struct fixture *fixture, const struct fixture_session *session, const char *type)
{
    struct http_answer answer;
    int count = 0;

    fixture_call(fixture, 0,
                 &(struct http_call){.target = "/v1/console/audit_events?limit=100", .cookie = session->token},
                 &answer);
    for (int i = 0; i < http_answer_json_count(&answer, "data"); i++) {
        char path[40], got[64] = "";

        snprintf(path, sizeof path, "data.%d.type", i);
        http_answer_json(&answer, path, got, sizeof got);
        count += strcmp(got, type) == 0;
    }
    return count;
}

static int call(const struct fixture *fixture, const struct http_call *call)
{
    struct http_answer answer;

    return fixture_call(fixture, 0, call, &answer);
}

Test(refusals, each_kind_has_a_line)
{
    struct fixture fixture;
    struct fixture_key narrow, test, revoked;
    struct fixture_session session;
    const struct node *node = &fixture.nodes[0];

    fixture_start(&fixture, 1, SOON);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &narrow);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &test);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &revoked);
    fixture_revoke_key(&fixture, &revoked);
    fixture_add_session(&fixture, NULL, false, &session);

    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/documents/secret", .bearer = revoked.secret}), 401);
    expect_line(node, "device_key_revoked", revoked.id);
    expect_line(node, "device_key_revoked", " ip=127.0.0.1 ");
    expect_line(node, "device_key_revoked", " asked_by=client method=GET route=/v1/documents ");
    expect_line(node, "device_key_revoked", fixture.account);
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/sandbox/secret", .bearer = narrow.secret}), 403);
    expect_line(node, "insufficient_scope", narrow.id);
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "POST",
                                                    .target = "/v1/api_keys",
                                                    .bearer = test.secret,
                                                    .json = "{\"name\":\"n\",\"mode\":\"live\"}"}),
                 403);
    expect_line(node, "mode_not_permitted", test.id);
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/whoami", .bearer = "secret"}), 401);
    expect_line(node, "invalid_api_key", " route=/v1/whoami ");
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "DELETE",
                                                    .target = "/v1/api_keys/key_01jd0000000000000000000001",
                                                    .bearer = fixture.manager.secret}),
                 404);
    expect_line(node, "api_key_not_found", " target=key_01jd0000000000000000000001 ");
    cr_expect_eq(call(&fixture,
                      &(struct http_call){
                          .method = "POST", .target = "/v1/auth/logout", .cookie = session.token, .csrf = "secret"}),
                 403);
    expect_line(node, "csrf_failed", fixture.user.id);
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "POST",
                                                    .target = "/v1/console/api_keys",
                                                    .cookie = session.token,
                                                    .csrf = session.csrf,
                                                    .json = "{\"name\":\"n\",\"mode\":\"live\"}"}),
                 403);
    expect_line(node, "step_up_required", " method=POST route=/v1/console/api_keys ");
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/console/session"}), 401);
    cr_expect_eq(count_lines(node, "request refused", "invalid_session"), 0, "nobody tried");
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/console/session", .cookie = "secret"}), 401);
    expect_line(node, "invalid_session", " route=/v1/console/session ");
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/console/usage", .bearer = narrow.secret}), 401);
    expect_line(node, "bearer_not_accepted", " route=/v1/console/usage ");
    cr_expect_eq(count_lines(node, "secret", "request refused"), 0);
    cr_expect_eq(count_lines(node, revoked.secret, ""), 0);

    await_refused(&fixture, &session, "live", 2);
    await_refused(&fixture, &session, "test", 1);
    fixture_stop(&fixture);
}

static void flood(const struct node *node, const struct fixture_key *key)
{
    struct http_answer answer;
    struct http_client client;

    http_client_connect(&client, node->internal_port);
    for (int i = 0; i < FLOOD / 2; i++) {
        http_client_call(&client,
                         &(struct http_call){.target = "/check/auth-request",
                                             .bearer = key->secret,
                                             .fields = "X-Original-Method: GET\r\nX-Original-URI: /v1/patients/7\r\n"},
                         &answer);
        cr_assert_eq(answer.status, 401);
    }
    http_client_close(&client);
}

Test(refusals, a_flood_of_a_revoked_key_leaves_few_lines_and_one_event)
{
    struct fixture fixture;
    struct fixture_key key;
    struct fixture_session session;
    char target[100];
    const time_t began = time(NULL);
    int most;

    fixture_start(&fixture, 2, SOON);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_revoke_key(&fixture, &key);
    fixture_add_session(&fixture, NULL, false, &session);
    for (size_t node = 0; node < 2; node++)
        flood(&fixture.nodes[node], &key);
    most = 1 + (int)(time(NULL) - began + 1) / PAUSE_S;
    for (size_t node = 0; node < 2; node++) {
        const int lines = count_lines(&fixture.nodes[node], "request refused", key.id);

        cr_expect(lines >= 1 && lines <= most, "%d lines, %d at most", lines, most);
        cr_expect_geq(count_lines(&fixture.nodes[node], "asked_by=gateway", "route=/v1/patients "), 1);
    }
    snprintf(target, sizeof target, "/v1/console/usage?days=2&key_ids=%s", key.id);
    expect_soon(&fixture, &session, target, "keys.0.refused", "10000");
    expect_soon(&fixture, &session, target, "keys.0.refused_reasons.revoked", "10000");
    expect_soon(&fixture, &session, target, "keys.0.requests", "0");
    cr_expect_eq(count_events(&fixture, &session, "api_key.used_after_revocation"), 1);
    expect_soon(&fixture, &session, "/v1/console/audit_events?limit=1", "data.0.type", "api_key.used_after_revocation");
    expect_soon(&fixture, &session, "/v1/console/audit_events?limit=1", "data.0.target", key.id);
    expect_soon(&fixture, &session, "/v1/console/audit_events?limit=1", "data.0.ip", "127.0.0.1");
    fixture_stop(&fixture);
}

/* Long before the node writes its usage. */
enum { USAGE_FLUSH_MS = 60000, AT_ONCE_MS = USAGE_FLUSH_MS / 2 };
#define USAGE_FLUSH_TEXT "60000"

static void expect_used(const struct fixture *fixture, const struct fixture_session *session, const char *ip,
                        const char *network, const char *route)
{
    const char *const target = "/v1/console/audit_events?limit=1&type=api_key.used_after_revocation";

    expect_within(AT_ONCE_MS, fixture, session, target, "data.0.ip", ip);
    expect_within(AT_ONCE_MS, fixture, session, target, "data.0.data.network", network);
    expect_within(AT_ONCE_MS, fixture, session, target, "data.0.data.route", route);
}

/* And somebody else within the hour, too, when a second has passed. */
Test(refusals, use_of_a_revoked_key_is_told_at_once_with_address_and_route)
{
    struct fixture fixture;
    struct fixture_key key;
    struct fixture_session session;

    fixture_start(
        &fixture, 1,
        (const char *const[]){"--usage-flush-ms", USAGE_FLUSH_TEXT, "--trusted-proxies", "127.0.0.1/32", NULL});
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_revoke_key(&fixture, &key);
    fixture_add_session(&fixture, NULL, false, &session);
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "DELETE",
                                                    .target = "/v1/patients/secret",
                                                    .bearer = key.secret,
                                                    .fields = "X-Forwarded-For: 192.0.2.7\r\n"}),
                 401);
    expect_used(&fixture, &session, "192.0.2.7", "192.0.2.0/24", "DELETE /v1/patients");
    poll(NULL, 0, 1100);
    cr_expect_eq(call(&fixture, &(struct http_call){.target = "/v1/whoami",
                                                    .bearer = key.secret,
                                                    .fields = "X-Forwarded-For: 198.51.100.7\r\n"}),
                 401);
    expect_used(&fixture, &session, "198.51.100.7", "198.51.100.0/24", "GET /v1/whoami");
    fixture_stop(&fixture);
}

static void create_decoy(const struct fixture *fixture, const struct fixture_session *session, struct fixture_key *ret)
{
    struct http_answer answer;
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/console/api_keys",
                                   .cookie = session->token,
                                   .csrf = session->csrf,
                                   .json = "{\"name\":\"Decoy\",\"mode\":\"live\",\"decoy\":true}"};

    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 201, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "id", ret->id, sizeof ret->id));
    cr_assert(http_answer_json(&answer, "secret", ret->secret, sizeof ret->secret));
}

Test(refusals, a_decoy_never_works_and_tells_of_its_use)
{
    struct fixture fixture;
    struct fixture_key decoy;
    struct fixture_session session, weak;
    char log[PROCESS_PATH_BYTES], target[128];

    fixture_start(&fixture, 0, NULL);
    snprintf(log, sizeof log, "%.150s/revocations", fixture.folder);
    for (size_t node = 0; node < 2; node++)
        fixture_add_node(&fixture,
                         (const char *const[]){"--usage-flush-ms", USAGE_FLUSH_TEXT, "--revocation-log", log, NULL});
    fixture_add_session(&fixture, NULL, false, &weak);
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "POST",
                                                    .target = "/v1/console/api_keys",
                                                    .cookie = weak.token,
                                                    .csrf = weak.csrf,
                                                    .json = "{\"name\":\"n\",\"mode\":\"live\",\"decoy\":true}"}),
                 403);
    fixture_add_session(&fixture, NULL, true, &session);
    create_decoy(&fixture, &session, &decoy);
    cr_expect(file_contains(log, decoy.id));
    for (size_t node = 0; node < 2; node++)
        cr_expect_eq(fixture_try_key(&fixture, node, decoy.secret), 401);
    expect_used(&fixture, &session, "127.0.0.1", "127.0.0.0/24", "GET /v1/whoami");
    snprintf(target, sizeof target, "/v1/console/audit_events?type=api_key.revoked&target=%s", decoy.id);
    expect_soon(&fixture, &session, target, "data.0.data.reason", "decoy");
    expect_soon(&fixture, &session, "/v1/console/api_keys?status=revoked", "data.0.id", decoy.id);
    fixture_stop(&fixture);
}

Test(refusals, a_revocation_that_was_not_confirmed_is_named)
{
    struct fixture fixture;
    struct fixture_key key;
    char path[64], replacement[80], list[80];

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    snprintf(path, sizeof path, "/v1/api_keys/%s", key.id);
    snprintf(replacement, sizeof replacement, "%s/replacement", path);
    snprintf(list, sizeof list, "{\"ids\":[\"%s\"]}", key.id);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
    cr_expect_eq(
        call(&fixture, &(struct http_call){.method = "DELETE", .target = path, .bearer = fixture.manager.secret}), 503);
    cr_expect_eq(count_lines(&fixture.nodes[0], "revocation not confirmed: repeat it", key.id), 1);
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "POST",
                                                    .target = replacement,
                                                    .bearer = fixture.manager.secret,
                                                    .json = "{\"overlap_seconds\":0}"}),
                 503);
    cr_expect_eq(count_lines(&fixture.nodes[0], "revocation not confirmed: repeat it", key.id), 2);
    /* A list names none: it can be repeated as a whole. */
    cr_expect_eq(call(&fixture, &(struct http_call){.method = "POST",
                                                    .target = "/v1/api_keys/revoke",
                                                    .bearer = fixture.manager.secret,
                                                    .json = list}),
                 503);
    cr_expect_eq(count_lines(&fixture.nodes[0], "revocation not confirmed: repeat it", "actor="), 3);
    cr_expect_eq(count_lines(&fixture.nodes[0], "revocation not confirmed: repeat it", "target="), 2);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
    fixture_stop(&fixture);
}
