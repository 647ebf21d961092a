/* What is left of a key long after its end. */
#include "base/clock.h"
#include "cli.h"
#include "fixture.h"
#include "leak_guard.h"
#include "old_keys.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(tombstones, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NAME_BYTES = 96, TOMBSTONE_BYTES_MAX = 120 };

static const char *name_of(const struct fixture *fixture, const char *kind, const char *rest)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%s%s", kind, rest);
    return fixture_name(fixture->account, name);
}

static int ask(const struct fixture *fixture, const char *target, struct http_answer *ret_answer)
{
    struct http_call call = {.target = target, .bearer = fixture->manager.secret};

    return fixture_call(fixture, 0, &call, ret_answer);
}

static int ask_about(const struct fixture *fixture, const struct fixture_key *key, const char *rest,
                     struct http_answer *ret_answer)
{
    char target[NAME_BYTES];

    snprintf(target, sizeof target, "/v1/api_keys/%s%s", key->id, rest);
    return ask(fixture, target, ret_answer);
}

static void expect_refused(const struct fixture *fixture, const char *secret, const char *code)
{
    struct http_call call = {.target = "/v1/whoami", .bearer = secret};
    struct http_answer answer;

    cr_expect_eq(fixture_call(fixture, 0, &call, &answer), 401, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), code);
}

Test(tombstones, are_all_that_stays_of_a_key)
{
    struct old_key api, device, young;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    old_key_add(&fixture, NULL, KEY_API, 401, &api);
    old_key_add(&fixture, NULL, KEY_DEVICE, 500, &device);
    old_key_add(&fixture, NULL, KEY_API, 399, &young);
    fixture_add_node(&fixture, NULL);
    old_key_await(&fixture, NULL, &api);
    old_key_await(&fixture, NULL, &device);
    for (unsigned times = 0; times < 2; times++) {
        expect_refused(&fixture, api.key.secret, "api_key_revoked");
        expect_refused(&fixture, device.key.secret, "device_key_revoked");
        expect_refused(&fixture, young.key.secret, "api_key_revoked");
    }
    cr_expect_eq(ask_about(&fixture, &api.key, "", &answer), 404);
    cr_expect_eq(ask_about(&fixture, &api.key, "/revocation", &answer), 404);
    cr_expect_eq(ask_about(&fixture, &young.key, "", &answer), 200);
    cr_expect_eq(ask_about(&fixture, &young.key, "/revocation", &answer), 200);
    cr_expect_eq(ask(&fixture, "/v1/api_keys?status=revoked", &answer), 200);
    cr_expect(!strstr(answer.body, api.key.id) && strstr(answer.body, young.key.id), "%s", answer.body);

    const char *tombstone = fixture_name(fixture.account, api.tombstone);
    char bytes[16];
    redis_server_ask(&fixture.redis, bytes, sizeof bytes, "MEMORY", "USAGE", tombstone, NULL);
    const long used = strtol(bytes, NULL, 10);
    cr_expect(used > 0 && used <= TOMBSTONE_BYTES_MAX, "%s", bytes);
    cr_expect_str_eq(redis_get(&fixture, name_of(&fixture, "id:", api.key.id)), "(nil)");
    cr_expect_str_eq(redis_get(&fixture, name_of(&fixture, "key:", api.digest)), "(nil)");
    fixture_stop(&fixture);
}

/* Nor can it be revoked once more: whoever sends its secret is told that it is over. */
Test(tombstones, are_found_by_their_secrets)
{
    struct http_answer answer;
    struct fixture fixture;
    struct cli_run run;
    struct old_key old;
    char token[FIXTURE_TOKEN_BYTES + 8], path[PROCESS_PATH_BYTES + 16], day[CLOCK_RFC3339_BYTES];

    fixture_start(&fixture, 0, NULL);
    old_key_add(&fixture, NULL, KEY_API, 401, &old);
    fixture_add_node(&fixture, NULL);
    old_key_await(&fixture, NULL, &old);
    snprintf(token, sizeof token, "token=%s", old.key.secret);
    struct http_call call = {.method = "POST", .target = "/v1/auth/revoke", .form = token};
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    snprintf(path, sizeof path, "%s/secret", fixture.folder);
    file_write(path, old.key.secret);
    clock_print_rfc3339(clock_wall_ms() - 401 * DAY_MS, day);
    day[10] = '\0';
    RUN(&fixture, &run, "key", "find", "--secret-file", path);
    cr_expect(run.exit_code == 0 && strstr(run.out, day), "%s%s", run.out, run.err);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", "--secret-file", path, "--yes");
    cr_expect(run.exit_code == 0 && strstr(run.out, day), "%s%s", run.out, run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* Who writes Redis can make no unknown secret look like a key's. */
Test(tombstones, that_somebody_made_are_none)
{
    struct fixture fixture;
    struct old_key old;
    char reply[64];

    fixture_start(&fixture, 0, NULL);
    old_key_add(&fixture, NULL, KEY_API, 401, &old);
    fixture_add_node(&fixture, NULL);
    old_key_await(&fixture, NULL, &old);
    const char *name = fixture_name(fixture.account, old.tombstone);
    long long number = strtoll(redis_get(&fixture, name), NULL, 10);
    snprintf(reply, sizeof reply, "%lld", number ^ 4);
    redis_server_ask(&fixture.redis, reply, sizeof reply, "SET", name, reply, NULL);
    expect_refused(&fixture, old.key.secret, "invalid_api_key");
    fixture_stop(&fixture);
}
