/* A backup brings revoked keys back to life; replaying the nodes' revocation logs ends them again. */
#include "base/clock.h"
#include "fixture.h"
#include "leak_guard.h"
#include "losses.h"

#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(revocation_log, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { COMMAND_ARGS_MAX = 12 };

/* `key revoke` with these arguments, up to a NULL. */
static void expect_replay(struct fixture *fixture, const char *const *more, const char *input, int exit_code,
                          const char *out_says, const char *err_says)
{
    const char *args[COMMAND_ARGS_MAX] = {"key", "revoke"};
    char *out, *err;

    for (size_t i = 2; i < COMMAND_ARGS_MAX - 1 && *more; i++)
        args[i] = *more++;
    int code = fixture_run(fixture, args, input, &out, &err);
    cr_expect_eq(code, exit_code, "%d: %s%s", code, out, err);
    cr_expect_not_null(strstr(out, out_says), "\"%s\" lacks: %s", out_says, out);
    cr_expect_not_null(strstr(err, err_says), "\"%s\" lacks: %s", err_says, err);
    free(out);
    free(err);
}
#define EXPECT_REPLAY(fixture, exit_code, out_says, err_says, ...) \
    expect_replay(fixture, (const char *const[]){__VA_ARGS__, NULL}, NULL, exit_code, out_says, err_says)

static void revoke_by_api(const struct fixture *fixture, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
}

static void revoke_in_console(struct fixture *fixture, const struct fixture_key *key)
{
    struct fixture_session session;
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/console/api_keys/%s", key->id);
    fixture_add_session(fixture, NULL, true, &session);
    struct http_call call = {
        .method = "DELETE", .target = target, .cookie = session.token, .csrf = session.csrf, .origin = NODE_ORIGIN};
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
}

static void expect_revoked(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    struct http_call call = {.target = "/v1/whoami", .bearer = key->secret};
    struct http_answer answer;

    cr_expect_eq(fixture_call(fixture, node, &call, &answer), 401, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked");
}

/* Redis' files, in its folder. */
static void copy_files(const struct redis_server *redis, const char *from, const char *to)
{
    char from_path[PROCESS_PATH_BYTES + 32], to_path[PROCESS_PATH_BYTES + 32];
    struct process process;

    for (; redis; redis = redis->next) {
        snprintf(from_path, sizeof from_path, "%s/%s", redis->folder, from);
        snprintf(to_path, sizeof to_path, "%s/%s", redis->folder, to);
        folder_remove(to_path);
        cr_assert_eq(process_run(&process, redis->folder, "cp",
                                 (const char *const[]){"cp", "-a", from_path, to_path, NULL}, NULL, PATIENCE_MS),
                     0);
    }
}

static void back_up(struct redis_server *redis)
{
    redis_server_freeze(redis);
    copy_files(redis, "appendonlydir", "backup");
    redis_server_thaw(redis);
}

static void restore(struct redis_server *redis)
{
    redis_server_kill(redis);
    copy_files(redis, "backup", "appendonlydir");
    redis_server_restart(redis);
}

static void rotate(const struct fixture *fixture, const char *path, const char *moved)
{
    const struct process *process = &fixture->nodes[0].process;
    struct deadline deadline = deadline_in(PATIENCE_MS);

    cr_assert_eq(rename(path, moved), 0);
    process_signal(process, SIGHUP);
    while (!file_contains(process->err_path, "revocation log reopened") && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 5);
    cr_assert(file_contains(process->err_path, "revocation log reopened"));
}

Test(revocation_log, brings_revocations_back_that_a_backup_lacks)
{
    enum { KEYS = 4 };
    char path[PROCESS_PATH_BYTES] = "", rotated[PROCESS_PATH_BYTES];
    const char *more[] = {"--revocation-log", path, NULL};
    struct fixture_key keys[KEYS], *by_api = &keys[0], *in_console = &keys[1], *late = &keys[2], *by_command = &keys[3];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    snprintf(rotated, sizeof rotated, "%.150s/revocations.1", fixture.folder);
    fixture_add_node(&fixture, more);
    for (size_t i = 0; i < KEYS; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
    back_up(&fixture.redis);

    revoke_by_api(&fixture, by_api);
    revoke_in_console(&fixture, in_console);
    rotate(&fixture, path, rotated);
    revoke_by_api(&fixture, late);
    EXPECT_REPLAY(&fixture, 0, "no node accepts it", "", by_command->id, "--revocation-log", path);
    for (size_t i = 0; i < KEYS; i++)
        expect_revoked(&fixture, 0, &keys[i]);
    node_stop(&fixture.nodes[0]);

    restore(&fixture.redis);
    fixture_add_node(&fixture, NULL);
    for (size_t i = 0; i < KEYS; i++)
        cr_assert_eq(fixture_try_key(&fixture, 1, keys[i].secret), 200, "this is the danger");
    node_stop(&fixture.nodes[1]);

    EXPECT_REPLAY(&fixture, 0, "4 keys revoked, 0 were revoked already, 0 unknown, 0 lines unreadable\n", "",
                  "--from-log", path, rotated);
    fixture_add_node(&fixture, NULL);
    for (size_t i = 0; i < KEYS; i++)
        expect_revoked(&fixture, 2, &keys[i]);
    cr_expect_eq(fixture_try_key(&fixture, 2, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

Test(revocation_log, is_replayed_under_serving_nodes_whatever_it_holds)
{
    enum { KEYS = 3 };
    char path[PROCESS_PATH_BYTES], log[1024];
    struct fixture_key keys[KEYS];
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    for (size_t i = 0; i < KEYS; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
    revoke_by_api(&fixture, &keys[2]);
    snprintf(log, sizeof log,
             "2026-01-31T12:00:00.000Z %s %s\n\n"
             "2026-01-31T12:00:00.000Z key_01j\n"
             "2026-01-31T12:00:00.000Z key_00000000000000000000000000 %s\n"
             "2026-01-31T12:00:01.000Z %s %s\n"
             "2026-01-31T12:00:01.000Z %s %s\n"
             "2026-01-31T12:00:02.000Z %s acct_01",
             keys[0].id, fixture.account, fixture.account, keys[0].id, fixture.account, keys[2].id, fixture.account,
             keys[1].id);
    file_write(path, log);
    cr_assert_eq(fixture_try_key(&fixture, 0, keys[0].secret), 200, "now the node remembers it");
    EXPECT_REPLAY(&fixture, 0, "2 keys revoked, 1 was revoked already, 1 unknown, 1 line unreadable\n",
                  "Unknown keys were created after the backup", "--from-log", path);
    for (size_t i = 0; i < KEYS; i++)
        expect_revoked(&fixture, 0, &keys[i]);
    expect_replay(
        &fixture, (const char *const[]){"--from-log", "--json", "-", NULL}, log, 0,
        "{\"revoked\":0,\"already_revoked\":3,\"not_due\":0,\"unknown\":1,\"failed\":0,\"unreadable_lines\":1}\n", "");
    fixture_stop(&fixture);
}

/* Schedules */

static void ask_end(struct fixture *fixture, size_t node, const char *method, const struct fixture_key *key,
                    const char *json, struct http_answer *answer)
{
    struct fixture_session session;
    char target[128];

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key->id);
    fixture_add_session(fixture, NULL, true, &session);
    struct http_call call = {.method = method,
                             .target = target,
                             .cookie = session.token,
                             .csrf = session.csrf,
                             .origin = NODE_ORIGIN,
                             .json = json};
    cr_assert_eq(fixture_call(fixture, node, &call, answer), 200, "%s", answer->body);
}

/* at_ms: 0 for never. */
static void set_end(struct fixture *fixture, const struct fixture_key *key, int64_t at_ms)
{
    struct http_answer answer;
    char at[CLOCK_RFC3339_BYTES], json[64];

    clock_print_rfc3339(at_ms, at);
    snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
    ask_end(fixture, 0, at_ms > 0 ? "PUT" : "DELETE", key, at_ms > 0 ? json : NULL, &answer);
}

static void expect_end(struct fixture *fixture, size_t node, const struct fixture_key *key, int64_t at_ms)
{
    struct http_answer answer;
    char at[CLOCK_RFC3339_BYTES] = "null", found[64] = "";

    if (at_ms > 0)
        clock_print_rfc3339(at_ms, at);
    ask_end(fixture, node, "GET", key, NULL, &answer);
    (void)http_answer_json(&answer, "revoke_at", found, sizeof found);
    cr_expect_str_eq(found, at, "%s", key->id);
}

static void await_line(const char *path, const char *id)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char line[64];

    snprintf(line, sizeof line, "Z %s ", id);
    while (!file_contains(path, line) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 5);
    cr_assert(file_contains(path, line), "%s", line);
}

static const char *const LATER_AND_NEVER[] = {"later", "delayed", "withdrawn", "sooner"};

Test(revocation_log, brings_schedules_back_and_ends_no_key_too_soon)
{
    enum { LATER, DELAYED, WITHDRAWN, SOONER, SOON, KEYS, HOUR_MS = 3600 * 1000 };
    char path[PROCESS_PATH_BYTES] = "";
    const char *more[] = {"--revocation-log", path, NULL};
    int64_t now_ms = clock_wall_ms();
    const int64_t ends_ms[SOON] = {now_ms + HOUR_MS, now_ms + 3 * HOUR_MS, 0, now_ms + 2 * HOUR_MS};
    struct fixture_key keys[KEYS];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    fixture_add_node(&fixture, more);
    for (size_t i = 0; i < KEYS; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
    for (size_t i = DELAYED; i <= SOONER; i++)
        set_end(&fixture, &keys[i], now_ms + 2 * HOUR_MS);
    back_up(&fixture.redis);
    set_end(&fixture, &keys[LATER], ends_ms[LATER]);
    set_end(&fixture, &keys[DELAYED], ends_ms[DELAYED]);
    set_end(&fixture, &keys[WITHDRAWN], 0);
    fixture_end_soon(&fixture, 0, &keys[SOON]);
    await_line(path, keys[SOON].id);
    expect_revoked(&fixture, 0, &keys[SOON]);
    node_stop(&fixture.nodes[0]);

    restore(&fixture.redis);
    fixture_add_node(&fixture, NULL);
    for (size_t i = 0; i < KEYS; i++)
        cr_assert_eq(fixture_try_key(&fixture, 1, keys[i].secret), 200, "this is the danger");
    node_stop(&fixture.nodes[1]);

    EXPECT_REPLAY(
        &fixture, 0,
        "1 key revoked, 0 were revoked already, 0 unknown, 0 lines unreadable, 4 not due (scheduled for later, "
        "or withdrawn)\n",
        "", "--from-log", path);
    fixture_add_node(&fixture, NULL);
    expect_revoked(&fixture, 2, &keys[SOON]);
    for (size_t i = 0; i < SOON; i++) {
        cr_expect_eq(fixture_try_key(&fixture, 2, keys[i].secret), 200, "%s", LATER_AND_NEVER[i]);
        expect_end(&fixture, 2, &keys[i], ends_ms[i]);
    }
    fixture_stop(&fixture);
}

/* The log may be older than what the store says, and then proves nothing. */
Test(revocation_log, a_replay_delays_and_withdraws_only_what_the_log_says_was_replaced)
{
    enum { SCHEDULED, WITHDRAWN, PAST, REVOKED, KEYS, HOUR_MS = 3600 * 1000 };
    char path[PROCESS_PATH_BYTES], log[1024], at[CLOCK_RFC3339_BYTES];
    int64_t now_ms = clock_wall_ms();
    struct fixture_key keys[KEYS];
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    for (size_t i = 0; i < KEYS; i++)
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
    set_end(&fixture, &keys[SCHEDULED], now_ms + HOUR_MS);
    set_end(&fixture, &keys[WITHDRAWN], now_ms + HOUR_MS);
    clock_print_rfc3339(now_ms + 2 * HOUR_MS, at);
    snprintf(log, sizeof log,
             "2026-01-31T12:00:00.000Z scheduled %s %s %s\n"
             "2026-01-31T12:00:00.000Z withdrawn %s %s\n"
             "2026-01-31T12:00:01.000Z scheduled %s %s 2026-02-01T12:00:00.000Z\n"
             "2026-01-31T12:00:00.000Z %s %s\n"
             "2026-01-31T12:00:01.000Z scheduled %s %s %s\n",
             keys[SCHEDULED].id, fixture.account, at, keys[WITHDRAWN].id, fixture.account, keys[PAST].id,
             fixture.account, keys[REVOKED].id, fixture.account, keys[REVOKED].id, fixture.account, at);
    file_write(path, log);
    cr_assert_eq(fixture_try_key(&fixture, 0, keys[PAST].secret), 200, "now the node remembers it");
    EXPECT_REPLAY(&fixture, 0,
                  "2 keys revoked, 0 were revoked already, 0 unknown, 0 lines unreadable, 2 not due (scheduled for "
                  "later, or withdrawn)\n",
                  "", "--from-log", path);
    expect_end(&fixture, 0, &keys[SCHEDULED], now_ms + HOUR_MS);
    expect_end(&fixture, 0, &keys[WITHDRAWN], now_ms + HOUR_MS);
    expect_revoked(&fixture, 0, &keys[PAST]);
    expect_revoked(&fixture, 0, &keys[REVOKED]);
    fixture_stop(&fixture);
}

Test(revocation_log, replay_tells_what_is_not_done)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.150s/revocations", fixture.folder);
    EXPECT_REPLAY(&fixture, 1, "", "nothing was revoked", "--from-log", path);
    EXPECT_REPLAY(&fixture, 1, "", "nothing was revoked", "--from-log", fixture.folder);
    EXPECT_REPLAY(&fixture, 2, "", "--from-log", fixture.manager.id, fixture.manager.id);
    EXPECT_REPLAY(&fixture, 1, "", "revocation log", fixture.manager.id, "--revocation-log", fixture.folder);
    EXPECT_REPLAY(&fixture, 1, "no node accepts it", "No space left", fixture.manager.id, "--revocation-log",
                  "/dev/full");
    file_write(path, "\x1f\x8b\b not a log\n");
    EXPECT_REPLAY(&fixture, 1, "", "not a revocation log", "--from-log", path);
    file_write(path, "");
    EXPECT_REPLAY(&fixture, 0, "0 keys revoked, 0 were revoked already, 0 unknown, 0 lines unreadable\n", "",
                  "--from-log", path);

    file_write(path, "2026-01-31T12:00:00.000Z key_00000000000000000000000000 acct_00000000000000000000000000\n");
    EXPECT_REPLAY(&fixture, 0, "0 keys revoked, 0 were revoked already, 1 unknown, 0 lines unreadable\n",
                  "No key of this log is in this store. Is it the right backup", "--from-log", path);

    snprintf(path, sizeof path, "%.150s/one", fixture.folder);
    char line[128];
    snprintf(line, sizeof line, "2026-01-31T12:00:00.000Z %s %s\n", fixture.manager.id, fixture.account);
    file_write(path, line);
    redis_server_tell(&fixture.redis, "SET", fixture_name(fixture.account, "lease_max"), "nonsense", NULL);
    EXPECT_REPLAY(&fixture, 1, "1 FAILED and may still be accepted\n", "chatelaine:", "--from-log", path);
    fixture_stop(&fixture);
}

/* A key that no log and no store knows. */
static void replay_unknown_without(struct fixture *fixture, unsigned lost)
{
    struct id unknown = id_mint(ID_KEY, 1);
    char path[PROCESS_PATH_BYTES + 16], line[128], number[8], named[64], not_done[80];
    const char *name = fixture_name_in(lost, "store");

    snprintf(number, sizeof number, "%u", lost);
    snprintf(named, sizeof named, "Partition %u: The names", lost);
    snprintf(not_done, sizeof not_done, "Not done. %s", named);
    redis_server_tell(&fixture->redis, "HSET", name, "partition", lost == 0 ? "1" : "0", NULL);
    snprintf(path, sizeof path, "%s/one.log", fixture->folder);
    snprintf(line, sizeof line, "2026-01-31T12:00:00.000Z %s %s\n", unknown.text, fixture->account);
    file_write(path, line);
    EXPECT_REPLAY(fixture, 1, "", not_done, unknown.text);
    EXPECT_REPLAY(fixture, 1, "1 FAILED and may still be accepted\n", named, "--from-log", path);
    redis_server_tell(&fixture->redis, "HSET", name, "partition", number, NULL);
}

/* One of two partitions cannot be asked, so no command says that a key is unknown. */
Test(revocation_log, a_partition_that_cannot_be_asked_is_named)
{
    struct fixture fixture;
    unsigned home;

    setenv("CHATELAINE_PARTITIONS", "2", 1);
    fixture_start(&fixture, 0, NULL);
    for (unsigned partition = 0; partition < 2; partition++)
        replay_unknown_without(&fixture, partition);
    home = fixture_partition_of(fixture.account);
    redis_server_tell(&fixture.redis, "HSET", fixture_name_in(1 - home, "store"), "partition", home == 0 ? "0" : "1",
                      NULL);
    EXPECT_REPLAY(&fixture, 0, fixture.manager.id, "", fixture.manager.id);
    fixture_stop(&fixture);
}

/* A file that is no longer what the node wrote */

static void start_with_log(struct fixture *fixture, char path[PROCESS_PATH_BYTES], struct fixture_key *keys,
                           size_t count)
{
    char folder[PROCESS_PATH_BYTES];

    fixture_start(fixture, 0, NULL);
    snprintf(folder, sizeof folder, "%.150s/logs", fixture->folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    snprintf(path, PROCESS_PATH_BYTES, "%.170s/revocations", folder);
    fixture_add_node(fixture, (const char *const[]){"--revocation-log", path, NULL});
    for (size_t i = 0; i < count; i++)
        fixture_create_key(fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &keys[i]);
}

static void expect_line(const char *path, const struct fixture_key *key)
{
    char line[64];

    snprintf(line, sizeof line, "Z %s ", key->id);
    cr_expect(file_contains(path, line), "%s", line);
}

enum harm { REMOVED, REPLACED, CUT, FOLDER_REPLACED };

static void inflict(enum harm harm, const char *path)
{
    char folder[PROCESS_PATH_BYTES];

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (harm == REMOVED || harm == REPLACED)
        cr_assert_eq(unlink(path), 0);
    if (harm == REPLACED)
        file_write(path, "");
    if (harm == CUT)
        cr_assert_eq(truncate(path, 10), 0);
    if (harm != FOLDER_REPLACED)
        return;
    folder_remove(folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
}

static void expect_followed(enum harm harm)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture_key keys[2];
    struct fixture fixture;

    start_with_log(&fixture, path, keys, 2);
    revoke_by_api(&fixture, &keys[0]);
    expect_line(path, &keys[0]);
    inflict(harm, path);
    revoke_by_api(&fixture, &keys[1]);
    expect_line(path, &keys[1]);
    losses_expect_told(&fixture, LOSS_REVOCATION_LOG, "chatelaine_log_losses_total{log=\"revocation\"}");
    fixture_stop(&fixture);
}

Test(revocation_log, goes_on_at_its_path_if_it_is_removed)
{
    expect_followed(REMOVED);
}

Test(revocation_log, goes_on_at_its_path_if_it_is_replaced)
{
    expect_followed(REPLACED);
}

Test(revocation_log, goes_on_at_its_path_if_it_is_cut)
{
    expect_followed(CUT);
}

Test(revocation_log, goes_on_at_its_path_if_its_folder_is_replaced)
{
    expect_followed(FOLDER_REPLACED);
}

/* Without a revocation, too. A file that was only renamed is no loss. */
Test(revocation_log, is_looked_at_by_its_path)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char path[PROCESS_PATH_BYTES], moved[PROCESS_PATH_BYTES];
    struct fixture_key key;
    struct fixture fixture;

    start_with_log(&fixture, path, &key, 1);
    revoke_by_api(&fixture, &key);
    snprintf(moved, sizeof moved, "%.150s/moved", fixture.folder);
    cr_assert_eq(rename(path, moved), 0);
    while (access(path, F_OK) != 0 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    cr_assert_eq(access(path, F_OK), 0);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_log_losses_total{log=\"revocation\"}"), 0);
    expect_line(moved, &key);
    fixture_stop(&fixture);
}

/* What could not be written is, as soon as there is a folder again. */
Test(revocation_log, catches_up)
{
    char path[PROCESS_PATH_BYTES], folder[PROCESS_PATH_BYTES];
    struct fixture_key keys[2];
    struct fixture fixture;

    start_with_log(&fixture, path, keys, 2);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    folder_remove(folder);
    revoke_by_api(&fixture, &keys[0]);
    revoke_by_api(&fixture, &keys[1]);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_revocation_log_unwritten"), 2);
    losses_await_status(&fixture, "The revocation log cannot be written: No such file or directory.");
    cr_assert_eq(mkdir(folder, 0700), 0);
    await_line(path, keys[0].id);
    await_line(path, keys[1].id);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_revocation_log_unwritten"), 0);
    fixture_stop(&fixture);
}

Test(revocation_log, catches_up_after_a_full_disk)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture_key keys[3];
    struct fixture fixture;
    struct rlimit limit = {.rlim_cur = 20, .rlim_max = RLIM_INFINITY};

    start_with_log(&fixture, path, keys, 3);
    cr_assert_eq(prlimit(fixture.nodes[0].process.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    revoke_by_api(&fixture, &keys[0]);
    revoke_by_api(&fixture, &keys[1]);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_revocation_log_unwritten"), 2);
    limit.rlim_cur = RLIM_INFINITY;
    cr_assert_eq(prlimit(fixture.nodes[0].process.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    await_line(path, keys[0].id);
    await_line(path, keys[1].id);
    revoke_by_api(&fixture, &keys[2]);
    await_line(path, keys[2].id);
    EXPECT_REPLAY(&fixture, 0, "0 keys revoked, 3 were revoked already, 0 unknown, 1 line unreadable\n", "",
                  "--from-log", path);
    fixture_stop(&fixture);
}
