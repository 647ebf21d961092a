/* Revocation by whoever holds the secret: POST /v1/auth/revoke at one node is in effect at all of them. */
#include "core/secret.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(holder, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { TEXT_BYTES = 512, FORM_BYTES = 8192, MISSES_FREE = 30 };

static const char *json_of(const struct http_answer *answer, const char *path)
{
    static char value[TEXT_BYTES];

    if (!http_answer_json(answer, path, value, sizeof value))
        snprintf(value, sizeof value, "(absent)");
    return value;
}

static int revoke(const struct fixture *fixture, size_t node, const char *secret, struct http_answer *ret_answer)
{
    char form[FORM_BYTES];
    struct http_call call = {.method = "POST", .target = "/v1/auth/revoke", .form = form};

    snprintf(form, sizeof form, "token=%s&token_type_hint=access_token", secret);
    return fixture_call(fixture, node, &call, ret_answer);
}

static void expect_revoked(const struct fixture *fixture, size_t node, const char *secret)
{
    struct http_answer answer;

    cr_assert_eq(revoke(fixture, node, secret, &answer), 200, "%s", answer.body);
    cr_expect_str_eq(answer.body, "");
}

static void expect_refused_everywhere(const struct fixture *fixture, const char *secret, const char *code)
{
    struct http_call call = {.target = "/v1/whoami", .bearer = secret};
    struct http_answer answer;

    for (size_t node = 0; node < fixture->node_count; node++) {
        fixture_await_key(fixture, node, secret, 401); /* 503 or 401; 200 would break the promise */
        fixture_call(fixture, node, &call, &answer);
        cr_expect(answer.status == 503 || strcmp(http_answer_code(&answer), code) == 0, "%s", answer.body);
    }
}

static void expect_event(const struct fixture *fixture, const struct fixture_session *session, const char *type,
                         const char *key)
{
    char path[128];
    struct http_call call = {.target = path, .cookie = session->token};
    struct http_answer answer;

    snprintf(path, sizeof path, "/v1/console/audit_events?actor=holder&target=%s", key);
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
    cr_assert_eq(http_answer_json_count(&answer, "data"), 1, "%s", answer.body);
    cr_expect_str_eq(json_of(&answer, "data.0.type"), type);
    cr_expect_str_eq(json_of(&answer, "data.0.actor_kind"), "holder");
    cr_expect_str_eq(json_of(&answer, "data.0.data.reason"), "holder");
    cr_expect_str_eq(json_of(&answer, "data.0.ip"), "127.0.0.1");
}

static void expect_nowhere(const struct fixture *fixture, const char *secret)
{
    for (size_t i = 0; i < fixture->node_count; i++) {
        char *log = node_log(&fixture->nodes[i]);

        cr_expect_null(strstr(log, secret), "the log has the secret");
        cr_expect_not_null(strstr(log, "key revoked"), "%s", log);
        free(log);
    }
}

Test(holder, a_secret_ends_its_key_at_every_node)
{
    static const struct {
        enum key_kind kind;
        enum key_mode mode;
        scope_set scopes;
        const char *code, *event;
    } CASES[] = {
        {KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, "api_key_revoked", "api_key.revoked"},
        {KEY_API, MODE_TEST, SCOPE_ALL, "api_key_revoked", "api_key.revoked"},
        {KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, "device_key_revoked", "device_key.revoked"},
    };
    struct fixture_session session;
    struct fixture fixture;

    fixture_start(&fixture, 2, NULL);
    fixture_add_session(&fixture, NULL, false, &session);
    for (size_t i = 0; i < 2 * (sizeof CASES / sizeof *CASES); i++) {
        size_t c = i / 2, node = i % 2;
        int before = CASES[c].kind == KEY_DEVICE ? 403 : 200;
        struct fixture_key key;

        fixture_add_key(&fixture, NULL, CASES[c].kind, CASES[c].mode, CASES[c].scopes, &key);
        fixture_await_key(&fixture, 0, key.secret, before);
        fixture_await_key(&fixture, 1, key.secret, before);
        expect_revoked(&fixture, node, key.secret);
        expect_refused_everywhere(&fixture, key.secret, CASES[c].code);
        expect_revoked(&fixture, 1 - node, key.secret);
        expect_event(&fixture, &session, CASES[c].event, key.id);
        expect_nowhere(&fixture, key.secret);
    }
    fixture_stop(&fixture);
}

static void expect_command(struct fixture *fixture, const char *verb, const char *account, const char *more)
{
    const char *const args[] = {"account", verb, account, more, NULL};
    char *out, *err;

    cr_assert_eq(fixture_run(fixture, args, NULL, &out, &err), 0, "%s%s", out, err);
    free(out);
    free(err);
}

Test(holder, keys_of_suspended_and_closed_accounts)
{
    char account[ID_TEXT_BYTES];
    struct fixture_key key;
    struct fixture fixture;

    fixture_start(&fixture, 2, NULL);
    fixture_add_account(&fixture, account);
    fixture_add_key(&fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    expect_command(&fixture, "suspend", account, NULL);
    expect_revoked(&fixture, 0, key.secret);
    expect_command(&fixture, "resume", account, NULL);
    for (size_t node = 0; node < fixture.node_count; node++)
        fixture_await_resumed(&fixture, node, key.secret, 401);
    expect_refused_everywhere(&fixture, key.secret, "api_key_revoked");
    expect_command(&fixture, "close", account, "--yes");
    expect_revoked(&fixture, 1, key.secret);
    fixture_stop(&fixture);
}

/* Every second one is not whole, and costs nothing. */
Test(holder, guesses_are_limited_and_revocations_of_keys_are_not)
{
    unsigned done = 0, limited = 0;
    struct fixture_key key, leaked;
    struct http_answer answer;
    struct secret guess;
    char wait[16];
    struct fixture fixture;

    fixture_start(&fixture, 2, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &leaked);
    for (unsigned i = 0; i < 2 * MISSES_FREE; i++)
        expect_revoked(&fixture, i % 2, key.secret);
    for (unsigned i = 0; i < 2 * MISSES_FREE; i++) {
        secret_mint(KEY_API, MODE_LIVE, &guess);
        int status = revoke(&fixture, i % 2, guess.text, &answer);

        done += status == 200;
        limited += status == 429;
        cr_expect(status != 429 || http_answer_field(&answer, "Retry-After", wait, sizeof wait), "no Retry-After");
        guess.text[20]++;
        cr_expect_eq(revoke(&fixture, i % 2, guess.text, &answer), 400, "%s", answer.body);
    }
    cr_expect_eq(done, MISSES_FREE);
    cr_expect_eq(limited, MISSES_FREE);
    expect_revoked(&fixture, 0, leaked.secret);
    expect_refused_everywhere(&fixture, leaked.secret, "api_key_revoked");
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200, "others are not affected");
    fixture_stop(&fixture);
}

/* Both keys end before the guess beside them must wait. */
Test(holder, every_secret_in_a_text_ends)
{
    struct fixture_key one, two;
    struct secret guess;
    struct fixture fixture;
    struct http_answer answer;
    char text[TEXT_BYTES];

    fixture_start(&fixture, 2, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &one);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &two);
    for (unsigned i = 0; i < MISSES_FREE; i++) {
        secret_mint(KEY_API, MODE_LIVE, &guess);
        cr_expect_eq(revoke(&fixture, 0, guess.text, &answer), 200);
    }
    secret_mint(KEY_API, MODE_LIVE, &guess);
    snprintf(text, sizeof text, "a;%s%%0Ab;%s%%0Acurl+-H+'X-API-Key:+%s'", guess.text, one.secret, two.secret);
    cr_expect_eq(revoke(&fixture, 1, text, &answer), 429, "%s", answer.body);
    expect_refused_everywhere(&fixture, one.secret, "api_key_revoked");
    expect_refused_everywhere(&fixture, two.secret, "device_key_revoked");
    snprintf(text, sizeof text, "%s%%0A%s", one.secret, two.secret);
    expect_revoked(&fixture, 1, text);
    fixture_stop(&fixture);
}

/* A log of last year has dozens of keys that are long forgotten. */
Test(holder, many_unknown_secrets_beside_a_key_count_once)
{
    enum { GUESSES = 2 * MISSES_FREE };
    char text[FORM_BYTES - TEXT_BYTES];
    struct http_answer answer;
    struct fixture_key key;
    struct fixture fixture;
    size_t len = 0;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    for (unsigned i = 0; i < GUESSES; i++) {
        struct secret guess;

        secret_mint(KEY_API, MODE_LIVE, &guess);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s+", guess.text);
    }
    snprintf(text + len, sizeof text - len, "%s", key.secret);
    for (unsigned i = 0; i < MISSES_FREE; i++)
        cr_assert_eq(revoke(&fixture, 0, text, &answer), 200, "%u: %s", i, answer.body);
    expect_refused_everywhere(&fixture, key.secret, "api_key_revoked");
    cr_expect_eq(revoke(&fixture, 0, text, &answer), 429, "%s", answer.body);
    fixture_stop(&fixture);
}

Test(holder, what_cannot_be_said_is_repeated)
{
    static const char *const HASTY[] = {"--redis-timeout-ms", "500", NULL};
    struct fixture_key key;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, HASTY);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    redis_server_tell_all(&fixture.redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL);
    cr_expect_eq(revoke(&fixture, 0, key.secret, &answer), 503, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "store_unavailable");
    redis_server_tell_all(&fixture.redis, "CLIENT", "UNPAUSE", NULL);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (revoke(&fixture, 0, key.secret, &answer) == 503 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_expect_eq(answer.status, 200, "%s", answer.body);
    expect_refused_everywhere(&fixture, key.secret, "api_key_revoked");
    fixture_stop(&fixture);
}

/* key find and key revoke --secret-file */

static void expect_run(struct fixture *fixture, const char *const *args, const char *input, int exit_code,
                       const char *out_says, const char *err_says)
{
    char *out, *err;

    cr_expect_eq(fixture_run(fixture, args, input, &out, &err), exit_code, "%s%s", out, err);
    cr_expect_not_null(strstr(out, out_says), "\"%s\" lacks: %s", out_says, out);
    cr_expect_not_null(strstr(err, err_says), "\"%s\" lacks: %s", err_says, err);
    cr_expect(!strstr(out, "svc_") && !strstr(err, "svc_"), "a secret is printed: %s%s", out, err);
    free(out);
    free(err);
}
#define EXPECT_RUN(fixture, input, exit_code, out_says, err_says, ...) \
    expect_run(fixture, (const char *const[]){__VA_ARGS__, NULL}, input, exit_code, out_says, err_says)

struct commanded {
    struct fixture fixture;
    struct fixture_key live, device, other;
    char other_account[ID_TEXT_BYTES];
};

static void commanded_start(struct commanded *commanded, size_t nodes)
{
    struct fixture *fixture = &commanded->fixture;

    fixture_start(fixture, nodes, NULL);
    fixture_add_account(fixture, commanded->other_account);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &commanded->live);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &commanded->device);
    fixture_add_key(fixture, commanded->other_account, KEY_API, MODE_TEST, SCOPE_ALL, &commanded->other);
}

Test(holder, commands_find_keys_by_their_secrets)
{
    struct commanded c;
    char path[PROCESS_PATH_BYTES], input[TEXT_BYTES];

    commanded_start(&c, 0);
    snprintf(path, sizeof path, "%.150s/found", c.fixture.folder);
    file_write(path, c.live.secret);
    EXPECT_RUN(&c.fixture, NULL, 0, c.live.id, "", "key", "find", "--secret-file", path);
    EXPECT_RUN(&c.fixture, NULL, 0, c.fixture.account, "", "key", "find", "--secret-file", path);
    snprintf(input, sizeof input, "\n%s\r\n  %s\n%s", c.live.secret, c.device.secret, c.other.secret);
    EXPECT_RUN(&c.fixture, input, 0, c.device.id, "", "key", "find", "--secret-file", "-");
    EXPECT_RUN(&c.fixture, input, 0, c.other_account, "", "key", "find", "--secret-file", "-", "--json");
    EXPECT_RUN(&c.fixture, input, 0, "\"account_name\":", "", "key", "find", "--secret-file", "-", "--json");
    fixture_stop(&c.fixture);
}

/* What is wrong with one line does not keep the others from being revoked. */
Test(holder, commands_revoke_keys_by_their_secrets)
{
    struct commanded c;
    struct secret unknown;
    char input[TEXT_BYTES], says[TEXT_BYTES];

    commanded_start(&c, 2);
    secret_mint(KEY_API, MODE_LIVE, &unknown);
    snprintf(input, sizeof input, "%s\nsvc_sk_live_x\n%s\n%s\n", c.live.secret, unknown.text, c.device.secret);
    snprintf(says, sizeof says, "Key %s was revoked at ", c.device.id);
    EXPECT_RUN(&c.fixture, input, 1, says, "Line 2: the start of a key, but no whole one", "key", "revoke",
               "--secret-file", "-");
    EXPECT_RUN(&c.fixture, input, 1, c.live.id, "Line 3: no key of this store has this secret", "key", "revoke",
               "--secret-file", "-", "--json");
    expect_refused_everywhere(&c.fixture, c.live.secret, "api_key_revoked");
    expect_refused_everywhere(&c.fixture, c.device.secret, "device_key_revoked");
    cr_expect_eq(fixture_try_key(&c.fixture, 0, c.other.secret), 200);
    snprintf(input, sizeof input, "%s", c.other.secret);
    EXPECT_RUN(&c.fixture, input, 0, c.other.id, "", "key", "revoke", "--secret-file", "-");
    expect_refused_everywhere(&c.fixture, c.other.secret, "api_key_revoked");
    fixture_stop(&c.fixture);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "w");

    cr_assert(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

/* As spreadsheets, shells and people leave them about. */
Test(holder, commands_find_secrets_in_any_text)
{
    struct commanded c;
    char input[2 * TEXT_BYTES], wide[4 * TEXT_BYTES], path[PROCESS_PATH_BYTES];
    const char *const ids[] = {c.live.id, c.device.id, c.other.id};

    commanded_start(&c, 2);
    snprintf(input, sizeof input,
             "\xef\xbb\xbf\"name\";\"key\"\r\n\"lab\";\"%s\"\r\ncurl -H 'X-API-Key: %s' https://x\r\n_%s_.txt %s",
             c.live.secret, c.device.secret, c.other.secret, c.live.secret);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        EXPECT_RUN(&c.fixture, input, 0, ids[i], "", "key", "find", "--secret-file", "-");
    snprintf(path, sizeof path, "%.150s/wide", c.fixture.folder);
    for (unsigned big = 0; big < 2; big++) {
        size_t len = 0;

        memcpy(wide, big ? "\xfe\xff" : "\xff\xfe", 2);
        for (len = 2; len - 2 < 2 * strlen(input) && input[(len - 2) / 2]; len += 2) {
            wide[len + big] = input[(len - 2) / 2];
            wide[len + 1 - big] = '\0';
        }
        write_bytes(path, wide, len);
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
            EXPECT_RUN(&c.fixture, NULL, 0, ids[i], "", "key", "find", "--secret-file", path);
    }
    EXPECT_RUN(&c.fixture, NULL, 0, c.device.id, "", "key", "revoke", "--secret-file", path);
    expect_refused_everywhere(&c.fixture, c.live.secret, "api_key_revoked");
    expect_refused_everywhere(&c.fixture, c.device.secret, "device_key_revoked");
    expect_refused_everywhere(&c.fixture, c.other.secret, "api_key_revoked");
    EXPECT_RUN(&c.fixture, "key;svc_sk\n", 1, "", "has no secret", "key", "revoke", "--secret-file", "-");
    fixture_stop(&c.fixture);
}

Test(holder, commands_revoke_into_the_revocation_log)
{
    struct commanded c;
    char path[PROCESS_PATH_BYTES];

    commanded_start(&c, 0);
    snprintf(path, sizeof path, "%.150s/revocations", c.fixture.folder);
    EXPECT_RUN(&c.fixture, c.live.secret, 0, c.live.id, "", "key", "revoke", "--secret-file", "-", "--revocation-log",
               path);
    cr_expect(file_contains(path, c.live.id));
    cr_expect_not(file_contains(path, c.live.secret));
    fixture_stop(&c.fixture);
}

/* As many as a file has room for, each twice. */
Test(holder, commands_take_a_file_full_of_secrets)
{
    enum { SECRETS = 10000, LINE_BYTES = 64 };
    char path[PROCESS_PATH_BYTES], *all = calloc(2 * SECRETS + 1, LINE_BYTES), *out, *err;
    struct fixture_key key;
    struct fixture fixture;
    size_t len = 0, lines = 0;

    cr_assert(all);
    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    for (unsigned i = 0; i < SECRETS; i++) {
        struct secret secret;

        secret_mint(KEY_DEVICE, MODE_LIVE, &secret);
        len += (size_t)snprintf(all + len, LINE_BYTES, "%s\n", secret.text);
    }
    memcpy(all + len, all, len);
    len += len;
    len += (size_t)snprintf(all + len, LINE_BYTES, "%s\n", key.secret);
    snprintf(path, sizeof path, "%.150s/full", fixture.folder);
    write_bytes(path, all, len);
    cr_expect_eq(
        fixture_run(&fixture, (const char *const[]){"key", "find", "--secret-file", path, NULL}, NULL, &out, &err), 1);
    cr_expect_not_null(strstr(out, key.id), "%s", out);
    for (const char *at = err; (at = strstr(at, "no key of this store has this secret")); at++)
        lines++;
    cr_expect_eq(lines, SECRETS);
    free(out);
    free(err);
    free(all);
    fixture_stop(&fixture);
}

Test(holder, commands_take_no_secret_as_an_argument)
{
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    EXPECT_RUN(&fixture, NULL, 2, "", "This is a key, not the name of a file", "key", "find", "--secret-file",
               key.secret);
    EXPECT_RUN(&fixture, NULL, 2, "", "This is a key, not the name of a file", "key", "revoke", "--secret-file",
               key.secret);
    EXPECT_RUN(&fixture, "\n \n", 1, "", "has no secret", "key", "find", "--secret-file", "-");
    EXPECT_RUN(&fixture, NULL, 2, "", "--secret-file is required", "key", "find");
    EXPECT_RUN(&fixture, NULL, 2, "", "--secret-file, or --from-log with files", "key", "revoke");
    EXPECT_RUN(&fixture, NULL, 2, "", "Give either --secret-file, or the id of one key", "key", "revoke", key.id,
               "--secret-file", "-");
    EXPECT_RUN(&fixture, NULL, 2, "", "Give either --secret-file, or options that select keys", "key", "revoke",
               "--secret-file", "-", "--scope", "keys:manage");
    EXPECT_RUN(&fixture, NULL, 2, "", "--secret-file, or --from-log with files", "key", "revoke", "--from-log");
    fixture_stop(&fixture);
}
