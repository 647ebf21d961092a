/* Closing an account for good, and taking its data out before. */
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(closing, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, KEYS = 250, PEOPLE = 25 };

/* More keys and people than one step of closing takes. */
struct scene {
    struct fixture fixture;
    char account[ID_TEXT_BYTES];
    struct fixture_key keys[3]; /* live, test, of a device: in memory at every node */
    struct fixture_user user;
    struct fixture_session session;
};

static void scene_start(struct scene *scene)
{
    struct fixture *fixture = &scene->fixture;
    struct fixture_key other;

    fixture_start(fixture, NODES, NULL);
    fixture_open_store(fixture);
    fixture_add_account(fixture, scene->account);
    fixture_add_key(fixture, scene->account, KEY_API, MODE_LIVE, SCOPE_ALL, &scene->keys[0]);
    fixture_add_key(fixture, scene->account, KEY_API, MODE_TEST, SCOPE_ALL, &scene->keys[1]);
    fixture_add_key(fixture, scene->account, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &scene->keys[2]);
    for (int i = 0; i < KEYS; i++)
        fixture_add_key(fixture, scene->account, KEY_API, i % 2 ? MODE_LIVE : MODE_TEST, SCOPE_ALL, &other);
    for (int i = 0; i < PEOPLE; i++) {
        char email[32];

        snprintf(email, sizeof email, "p%d@clinic.example", i);
        fixture_add_person(fixture, scene->account, email, ROLE_OWNER, &scene->user);
    }
    fixture_add_session(fixture, &scene->user, false, &scene->session);
    fixture_close_store(fixture);
    for (size_t node = 0; node < NODES; node++)
        for (int times = 0; times < 4; times++)
            fixture_await_key(fixture, node, scene->keys[times % 2].secret, 200);
}

static void expect_refused(struct scene *scene, size_t node)
{
    struct fixture *fixture = &scene->fixture;
    struct http_call seen = {.target = "/v1/console/session", .cookie = scene->session.token};
    struct http_answer answer;

    for (size_t i = 0; i < 3; i++) {
        struct http_call call = {.target = "/v1/whoami", .bearer = scene->keys[i].secret};

        fixture_await_key(fixture, node, scene->keys[i].secret, 401);
        cr_expect_eq(fixture_call(fixture, node, &call, &answer), 401, "%s", answer.body);
        cr_expect_str_eq(http_answer_code(&answer), i < 2 ? "api_key_revoked" : "device_key_revoked");
    }
    cr_expect_eq(fixture_call(fixture, node, &seen, &answer), 401, "%s", answer.body);
    cr_expect_eq(fixture_try_key(fixture, node, fixture->manager.secret), 200, "another account's");
}

static void expect_removed(struct scene *scene)
{
    static const char *const SETS[] = {"ak-live", "ak-test", "dk"};
    struct fixture *fixture = &scene->fixture;
    char count[64], name[128];

    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%sacct:%s:keys:%s:active", fixture_name(scene->account, ""), scene->account,
                 SETS[i]);
        redis_server_ask(&fixture->redis, count, sizeof count, "ZCARD", name, NULL);
        cr_expect_str_eq(count, "0", "%s", name);
    }
    snprintf(name, sizeof name, "%sacct:%s:users", fixture_name(scene->account, ""), scene->account);
    redis_server_ask(&fixture->redis, count, sizeof count, "SCARD", name, NULL);
    cr_expect_str_eq(count, "0");
    redis_server_ask(&fixture->redis, count, sizeof count, "HLEN", fixture_name(scene->account, "suspended"), NULL);
    cr_expect_str_eq(count, "1", "only the version is left");
}

static void expect_closed(struct scene *scene)
{
    struct fixture *fixture = &scene->fixture;
    struct fixture_user again;
    struct cli_run run;

    for (size_t node = 0; node < NODES; node++)
        expect_refused(scene, node);
    expect_removed(scene);
    RUN(fixture, &run, "account", "close", scene->account, "--yes");
    cli_expect_refusal(&run, 1, "closed already", "closing again");
    RUN(fixture, &run, "account", "resume", scene->account);
    cli_expect_refusal(&run, 1, "cannot be resumed", "resuming");
    RUN(fixture, &run, "account", "suspend", scene->account);
    cli_expect_refusal(&run, 1, "The account is closed", "suspending");
    RUN(fixture, &run, "account", "list", "--json");
    cr_expect(strstr(run.out, "\"status\":\"closed\""), "%s", run.out);
    cli_finish(&run);
    fixture_add_person(fixture, NULL, "p0@clinic.example", ROLE_OWNER, &again); /* its email is free */
}

Test(closing, revokes_and_removes_all)
{
    static struct scene scene;
    struct cli_run run;

    scene_start(&scene);
    RUN(&scene.fixture, &run, "account", "close", scene.account);
    cli_expect_refusal(&run, 2, "needs --yes", "without a terminal");
    cr_expect_eq(fixture_try_key(&scene.fixture, 0, scene.keys[0].secret), 200);
    RUN(&scene.fixture, &run, "account", "close", scene.account, "--yes", "--json");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "\"status\":\"closed\",\"keys_revoked\":253,\"people_removed\":25,\"sessions_ended\":1"),
              "%s", run.out);
    cli_finish(&run);
    expect_closed(&scene);
    fixture_stop(&scene.fixture);
}

/* Killed at some time after the beginning was marked in Redis: it cannot be resumed, and the next command ends it. */
static void expect_nothing_of(const struct fixture *fixture, const char *account, const char *kind)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char name[96], exists[8];

    snprintf(name, sizeof name, "acct:%s:%s", account, kind);
    do {
        redis_server_ask(&fixture->redis, exists, sizeof exists, "EXISTS", fixture_name(account, name), NULL);
    } while (strcmp(exists, "0") != 0 && deadline_left_ms(deadline) > 0 && poll(NULL, 0, 20) == 0);
    cr_expect_str_eq(exists, "0", "%s", name);
}

/* Also when the account was closed before. Its keys are tombstones then, and stay refused. */
Test(closing, erases_people_and_keys)
{
    static const char *const KINDS[] = {
        "keys:ak-live:revoked", "keys:ak-test:revoked", "keys:dk:revoked", "gone", "gone_people", "gone_since"};
    static struct scene scene;
    struct cli_run run;

    scene_start(&scene);
    RUN(&scene.fixture, &run, "account", "close", scene.account, "--yes");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    RUN(&scene.fixture, &run, "account", "close", scene.account, "--erase");
    cli_expect_refusal(&run, 2, "needs --yes", "without a terminal");
    RUN(&scene.fixture, &run, "account", "close", scene.account, "--erase", "--yes");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        expect_nothing_of(&scene.fixture, scene.account, KINDS[i]);
    RUN(&scene.fixture, &run, "key", "list", "--account", scene.account, "--json");
    cr_expect(run.exit_code == 0 && !strstr(run.out, "key_"), "%s%s", run.out, run.err);
    cli_finish(&run);
    expect_closed(&scene);
    fixture_stop(&scene.fixture);
}

Test(closing, goes_on_where_it_was_killed)
{
    static struct scene scene;
    struct process command;
    struct cli_run run;
    char name[128], value[64];

    scene_start(&scene);
    struct fixture *fixture = &scene.fixture;
    const char *const argv[] = {node_binary(),
                                "account",
                                "close",
                                scene.account,
                                "--yes",
                                "--redis",
                                fixture->redis.url,
                                "--master-key-file",
                                fixture->master_key_path,
                                NULL};
    for (int tries = 0; tries < 4; tries++) {
        struct deadline deadline = deadline_in(PATIENCE_MS);

        process_start(&command, fixture->folder, "close", argv);
        snprintf(name, sizeof name, "%sacct:%s", fixture_name(scene.account, ""), scene.account);
        do {
            redis_server_ask(&fixture->redis, value, sizeof value, "HGET", name, "closing", NULL);
            cr_assert_gt(deadline_left_ms(deadline), 0);
        } while (strcmp(value, "(nil)") == 0);
        poll(NULL, 0, tries * 300);
        process_kill(&command);
        RUN(fixture, &run, "account", "resume", scene.account);
        cli_expect_refusal(&run, 1, "cannot be resumed", "resuming");
    }
    RUN(fixture, &run, "account", "close", scene.account, "--yes");
    cr_expect(run.exit_code == 0 || strstr(run.err, "closed already"), "%s", run.err);
    cli_finish(&run);
    expect_closed(&scene);
    fixture_stop(&scene.fixture);
}

static size_t count_lines(const char *text, const char *begin)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, begin)); at++)
        count += at == text || at[-1] == '\n';
    return count;
}

Test(closing, export_has_everything_but_secrets)
{
    static struct scene scene;
    char path[PROCESS_PATH_BYTES + 16];
    struct cli_run run;
    struct stat status;

    scene_start(&scene);
    snprintf(path, sizeof path, "%s/out.ndjson", scene.fixture.folder);
    RUN(&scene.fixture, &run, "account", "export", scene.account, "--output", path);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_str_empty(run.out);
    cli_finish(&run);
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
    char *text = file_read(path);
    cr_expect_eq(count_lines(text, "{\"type\":\"account\","), 1);
    cr_expect_eq(count_lines(text, "{\"type\":\"user\","), PEOPLE);
    cr_expect_eq(count_lines(text, "{\"type\":\"key\","), KEYS + 3);
    cr_expect_geq(count_lines(text, "{\"type\":\"event\","), KEYS + 3 + PEOPLE);
    cr_expect(strstr(text, scene.user.email));
    cr_expect_eq(count_lines(text, "{\"type\":\"user\",\"id\":\"usr_"), PEOPLE);
    cr_expect(strstr(text, "\",\"role\":\"owner\",\"status\":\"active\",\"created_at\":\"20"), "state of a user");
    static const char *const SECRETS[] = {"svc_sk_", "svc_dk_", "scrypt", "password\":", "totp", "digest", "mac\":"};
    for (size_t i = 0; i < sizeof SECRETS / sizeof *SECRETS; i++)
        cr_expect_null(strstr(text, SECRETS[i]), "%s", SECRETS[i]);
    cr_expect_null(strstr(text, scene.fixture.account), "another account's data");
    free(text);
    RUN(&scene.fixture, &run, "account", "export", scene.account, "--output", path);
    cli_expect_refusal(&run, 1, "Cannot create", "a file that exists");
    RUN(&scene.fixture, &run, "account", "close", scene.account, "--yes", "--export", path);
    cli_expect_refusal(&run, 1, "Cannot create", "closing with a file that exists");
    cr_expect_eq(fixture_try_key(&scene.fixture, 0, scene.keys[0].secret), 200, "nothing was changed");
    RUN(&scene.fixture, &run, "account", "export", scene.account);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_lines(run.out, "{\"type\":\"key\","), KEYS + 3);
    cli_finish(&run);
    RUN(&scene.fixture, &run, "account", "export", "acct_01jd8x4v2m7q9c3t5r6w8y0zab");
    cli_expect_refusal(&run, 1, "There is no account", "unknown");
    fixture_stop(&scene.fixture);
}
