/* The audit log: what two nodes do stands in their logs, which verify; what a node that was killed or had a full disk
 * could not log, another one does. */
#include "cli.h"
#include "fixture.h"
#include "leak_guard.h"
#include "losses.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(audit_log, .fini = leak_guard, .timeout = 2 * TEST_WITHIN_S);

enum { FILE_MAX = 256 * 1024 };

struct logs {
    struct fixture fixture;
    char path[2][PROCESS_PATH_BYTES];
};

/* Until so many chains are published: from then on commands know that logs are written. */
static void await_published(struct logs *logs, size_t chains)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reply[64];

    do {
        redis_server_ask(&logs->fixture.redis, reply, sizeof reply, "HLEN",
                         fixture_name(logs->fixture.account, "log_heads"), NULL);
        poll(NULL, 0, 10);
    } while ((size_t)strtol(reply, NULL, 10) < chains && deadline_left_ms(deadline) > 0);
    cr_assert_geq((size_t)strtol(reply, NULL, 10), chains);
}

static void add_logging_node(struct logs *logs, size_t which)
{
    snprintf(logs->path[which], sizeof logs->path[which], "%.150s/audit%zu.log", logs->fixture.folder, which);
    fixture_add_node(&logs->fixture, (const char *const[]){"--audit-log", logs->path[which], NULL});
    await_published(logs, which + 1);
}

/* Redis, an account, and so many nodes with a log each. */
static void start(struct logs *logs, size_t nodes)
{
    fixture_start(&logs->fixture, 0, NULL);
    for (size_t i = 0; i < nodes; i++)
        add_logging_node(logs, i);
}

/* The caller frees it. */
static char *read_log(const char *path)
{
    char *content = calloc(1, FILE_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, content, FILE_MAX - 1);

    cr_assert_lt(got, FILE_MAX - 1);
    if (fd >= 0)
        close(fd);
    return content;
}

/* Whether a line of the file has both. */
static bool has_line(const char *path, const char *one, const char *other)
{
    char *content = read_log(path), *rest = content, *line;
    bool has = false;

    while ((line = strsep(&rest, "\n")))
        has |= strstr(line, one) && strstr(line, other);
    free(content);
    return has;
}

static void await_line(const char *path, const char *one, const char *other)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!has_line(path, one, other) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    cr_assert(has_line(path, one, other), "%s has no line with %s and %s", path, one, other);
}

static void expect_verdict(const struct logs *logs, int exit_code, const char *says, const char *const *args)
{
    struct cli_run run;

    cli_run_bare(&logs->fixture, &run, args);
    cr_expect_eq(run.exit_code, exit_code, "%s%s", run.out, run.err);
    cr_expect_not_null(strstr(run.out, says), "\"%s\" lacks: %s%s", says, run.out, run.err);
    cli_finish(&run);
}

/* By the files alone. second may be NULL. */
static void verify(const struct logs *logs, int exit_code, const char *says, const char *first, const char *second)
{
    expect_verdict(logs, exit_code, says,
                   (const char *const[]){"audit", "verify", "--master-key-file", logs->fixture.master_key_path, first,
                                         second, NULL});
}

/* With the heads in Redis, too. */
static void verify_by_redis(const struct logs *logs, int exit_code, const char *says, const char *first,
                            const char *second)
{
    expect_verdict(logs, exit_code, says,
                   (const char *const[]){"audit", "verify", "--master-key-file", logs->fixture.master_key_path,
                                         "--redis", logs->fixture.redis.url, first, second, NULL});
}

static int try_to_revoke(const struct logs *logs, size_t node, const struct fixture_key *key,
                         struct http_answer *ret_answer)
{
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = logs->fixture.manager.secret};
    return fixture_call(&logs->fixture, node, &call, ret_answer);
}

static int revoke_key(const struct logs *logs, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;

    return try_to_revoke(logs, node, key, &answer);
}

static long unlogged(struct logs *logs, const char *class)
{
    char name[64], reply[64];

    snprintf(name, sizeof name, "%sunlogged:%s", fixture_name(logs->fixture.account, ""), class);
    redis_server_ask(&logs->fixture.redis, reply, sizeof reply, "XLEN", name, NULL);
    return strtol(reply, NULL, 10);
}

static void await_nothing_unlogged(struct logs *logs)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (unlogged(logs, "live") + unlogged(logs, "people") > 0 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    cr_expect_eq(unlogged(logs, "live") + unlogged(logs, "people"), 0);
}

/* Ends the nodes that still run. */
static void stop_nodes(struct logs *logs)
{
    for (size_t i = 0; i < logs->fixture.node_count; i++)
        if (logs->fixture.nodes[i].process.pid > 0)
            node_stop(&logs->fixture.nodes[i]);
}

/* Exchanges heads and takes over now, not within a minute. */
static void hurry(const struct logs *logs, size_t node)
{
    process_signal(&logs->fixture.nodes[node].process, SIGHUP);
}

Test(audit_log, holds_each_change_before_it_is_answered)
{
    struct fixture_key key;
    struct logs logs;
    struct fixture_user ana;
    struct http_answer answer;
    char *content;

    start(&logs, 2);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    cr_expect(has_line(logs.path[0], "\"api_key.created\"", key.id), "at once");
    cr_expect_eq(revoke_key(&logs, 1, &key), 200);
    cr_expect(has_line(logs.path[1], "\"api_key.revoked\"", key.id), "at once");
    cr_expect(has_line(logs.path[1], "\"actor_kind\":\"api_key\"", "\"target_kind\":\"api_key\""));
    fixture_add_user(&logs.fixture, "ana@north.test", &ana);
    cr_expect_eq(fixture_login(&logs.fixture, 0, &ana, "wrong-Horse-battery-9", "000000", NULL, &answer), 401);
    cr_expect(has_line(logs.path[0], "\"login.failed\"", ana.id));
    cr_expect_eq(fixture_login(&logs.fixture, 0, &ana, FIXTURE_PASSWORD, NULL, NULL, &answer), 200, "%s", answer.body);
    cr_expect(has_line(logs.path[0], "\"session.created\"", ana.id));

    /* A command writes no log: some node takes over. */
    hurry(&logs, 0);
    hurry(&logs, 1);
    struct deadline deadline = deadline_in(2 * PATIENCE_MS);
    while (!has_line(logs.path[0], "\"user.created\"", "\"taken_over_from\":\"command\"") &&
           !has_line(logs.path[1], "\"user.created\"", "\"taken_over_from\":\"command\"") &&
           deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect_gt(deadline_left_ms(deadline), 0);
    await_nothing_unlogged(&logs);
    content = read_log(logs.path[0]);
    cr_expect_null(strstr(content, key.secret));
    cr_expect_null(strstr(content, FIXTURE_PASSWORD));
    free(content);
    verify(&logs, 3, "Not proven", logs.path[0], logs.path[1]);
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], logs.path[1]);
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "its node stopped", logs.path[0], logs.path[1]);
    fixture_stop(&logs.fixture);
}

/* The highest number of a line that the log has seen in another one. */
static long noted_seq(const char *path)
{
    char *content = read_log(path), *rest = content, *line;
    long highest = 0;

    while ((line = strsep(&rest, "\n"))) {
        const char *seq = strstr(line, "\"log.head\"") ? strstr(line, "\"seq\":\"") : NULL;

        if (seq && strtol(seq + 7, NULL, 10) > highest)
            highest = strtol(seq + 7, NULL, 10);
    }
    free(content);
    return highest;
}

static void write_log(const char *path, const char *content, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    cr_assert_eq(write(fd, content, len), (ssize_t)len);
    close(fd);
}

/* One byte changed, one line removed, the end cut off: the last shows in the other node's file. */
Test(audit_log, what_somebody_does_to_it_shows)
{
    struct fixture_key key;
    struct logs logs;
    char altered[PROCESS_PATH_BYTES], *content, *line;

    start(&logs, 2);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    cr_expect_eq(revoke_key(&logs, 0, &key), 200);
    /* When they end, node 0 publishes its last head, and node 1 notes it. */
    node_stop(&logs.fixture.nodes[0]);
    stop_nodes(&logs);
    cr_expect_geq(noted_seq(logs.path[1]), 4);
    verify(&logs, 3, "others saw it up to", logs.path[0], logs.path[1]); /* and who saw the last one's? */
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], logs.path[1]);
    verify_by_redis(&logs, 3, "Redis: names a log whose file was not given", logs.path[0], NULL);

    snprintf(altered, sizeof altered, "%.150s/altered.log", logs.fixture.folder);
    content = read_log(logs.path[0]);
    line = strstr(content, "api_key.revoked");
    *line = 'A';
    write_log(altered, content, strlen(content));
    verify(&logs, 1, "was changed", altered, NULL);
    *line = 'a';
    while (line[-1] != '\n')
        line--;
    size_t before = (size_t)(line - content);
    write_log(altered, content, before);
    verify(&logs, 3, "nothing here confirms its end", altered, NULL);
    verify_by_redis(&logs, 1, "Redis: saw lines that the log lacks", altered, logs.path[1]);
    verify(&logs, 1, "its end was cut off", altered, logs.path[1]);
    line = strchr(line, '\n') + 1;
    memmove(content + before, line, strlen(line) + 1);
    write_log(altered, content, strlen(content));
    verify(&logs, 1, "lines before it are missing (seq ", altered, NULL);
    free(content);
    write_log(altered, "", 0);
    verify(&logs, 1, "Something is wrong", altered, NULL);
    cr_assert_eq(unlink(altered), 0);
    fixture_stop(&logs.fixture);
}

/* What a run on the earlier file prints lets the next one begin with the later file, and must fit. */
static void verify_further(const struct logs *logs, const char *earlier, const char *later)
{
    struct cli_run run;
    char head[128] = "";
    const char *const args[] = {"audit",
                                "verify",
                                "--master-key-file",
                                logs->fixture.master_key_path,
                                "--redis",
                                logs->fixture.redis.url,
                                "--expect",
                                head,
                                later,
                                NULL};

    cli_run_bare(&logs->fixture, &run,
                 (const char *const[]){"audit", "verify", "--master-key-file", logs->fixture.master_key_path, "--json",
                                       earlier, NULL});
    const char *printed = strstr(run.out, "\"head\":\"");
    cr_assert_not_null(printed, "%s", run.out);
    snprintf(head, sizeof head, "%.*s", (int)strcspn(printed + 8, "\""), printed + 8);
    cli_finish(&run);
    expect_verdict(logs, 0, "Nothing is wrong.", args);
    head[strlen(head) - 1] ^= 1;
    expect_verdict(logs, 1, "contradicts other lines", args);
    *strrchr(head, ':') = '\0';
    expect_verdict(logs, 0, "Nothing is wrong.", args);
    cli_run_bare(&logs->fixture, &run,
                 (const char *const[]){"audit", "verify", "--master-key-file", logs->fixture.master_key_path,
                                       "--expect", "x:1", later, NULL});
    cli_expect_refusal(&run, 2, "--expect takes CHAIN:SEQ:MAC", "no head");
}

/* Redis is away just when somebody looks into what happened. */
Test(audit_log, files_are_judged_without_the_redis_that_was_asked)
{
    char changed[PROCESS_PATH_BYTES];
    struct logs logs;
    const char *const args[] = {"audit",
                                "verify",
                                "--redis-timeout-ms",
                                "500",
                                "--redis",
                                logs.fixture.redis.url,
                                "--master-key-file",
                                logs.fixture.master_key_path,
                                logs.path[0],
                                "--json",
                                NULL,
                                NULL};
    const char *more[sizeof args / sizeof *args];

    memcpy(more, args, sizeof args);
    start(&logs, 1);
    stop_nodes(&logs);
    expect_verdict(&logs, 0, "\"redis\":\"compared\"", args);
    redis_server_stop(&logs.fixture.redis);
    expect_verdict(&logs, 3, "\"redis\":\"silent\"", args);
    more[9] = NULL;
    expect_verdict(&logs, 3, "unproven Redis did not say", more);
    snprintf(changed, sizeof changed, "%.150s/changed.log", logs.fixture.folder);
    file_write(changed, "{\"seq\":1}\n");
    more[9] = changed;
    expect_verdict(&logs, 1, "Something is wrong", more);
    fixture_stop(&logs.fixture);
}

Test(audit_log, goes_on_across_restarts_and_rotation)
{
    char rotated[PROCESS_PATH_BYTES];
    struct fixture_key key;
    struct logs logs;

    start(&logs, 1);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    node_stop(&logs.fixture.nodes[0]);
    fixture_add_node(&logs.fixture, (const char *const[]){"--audit-log", logs.path[0], NULL});
    cr_expect_eq(revoke_key(&logs, 1, &key), 200);
    snprintf(rotated, sizeof rotated, "%.150s/audit0.log.1", logs.fixture.folder);
    cr_assert_eq(rename(logs.path[0], rotated), 0);
    hurry(&logs, 1);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (!file_contains(logs.fixture.nodes[1].process.err_path, "audit log reopened") &&
           deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 5);
    fixture_create_key(&logs.fixture, 1, "{\"name\":\"b\",\"mode\":\"live\"}", &key);
    cr_expect(has_line(logs.path[0], "\"log.continued\"", "\"seq\":"));
    cr_expect(has_line(logs.path[0], "\"api_key.created\"", key.id));
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "seq 1 to ", rotated, logs.path[0]);
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], rotated);
    verify_by_redis(&logs, 3, "continues an earlier file", logs.path[0], NULL);
    verify(&logs, 3, "Not proven", rotated, NULL); /* without the newest file */
    verify_by_redis(&logs, 1, "Redis: saw lines that the log lacks", rotated, NULL);
    verify_further(&logs, rotated, logs.path[0]);
    fixture_stop(&logs.fixture);
}

/* What an account gets of the heads, in a file. */
static void fetch_heads(const struct logs *logs, size_t node, const char *path)
{
    struct http_call call = {.target = "/v1/audit/heads", .bearer = logs->fixture.manager.secret};
    struct http_answer answer;

    cr_assert_eq(fixture_call(&logs->fixture, node, &call, &answer), 200, "%s", answer.body);
    cr_expect_not_null(strstr(answer.head, "application/jose"), "%s", answer.head);
    write_log(path, answer.body, strlen(answer.body));
}

static void verify_expecting(const struct logs *logs, int exit_code, const char *says, const char *heads,
                             const char *first, const char *second)
{
    expect_verdict(logs, exit_code, says,
                   (const char *const[]){"audit", "verify", "--master-key-file", logs->fixture.master_key_path,
                                         "--expect", heads, first, second, NULL});
}

/* An account keeps what it was given. Whoever has the master key can make a flawless log, but not with what was signed.
 */
Test(audit_log, what_an_account_was_given_cannot_be_taken_back)
{
    char heads[PROCESS_PATH_BYTES], cut[PROCESS_PATH_BYTES], *content, *end;
    struct fixture_key key;
    struct logs logs;

    start(&logs, 2);
    snprintf(heads, sizeof heads, "%.150s/heads.jwt", logs.fixture.folder);
    snprintf(cut, sizeof cut, "%.150s/cut.log", logs.fixture.folder);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    cr_expect_eq(revoke_key(&logs, 0, &key), 200);
    stop_nodes(&logs); /* the last heads are published */
    fixture_add_node(&logs.fixture, NULL);
    fetch_heads(&logs, 2, heads);
    verify_expecting(&logs, 0, "Nothing is wrong.", heads, logs.path[0], logs.path[1]);
    verify_expecting(&logs, 3, "heads.jwt: has a head that no line here has", heads, logs.path[0], NULL);
    /* The last line of the log whose node ended last: no other log has seen it. */
    content = read_log(logs.path[1]);
    end = content + strlen(content) - 1;
    while (end[-1] != '\n')
        end--;
    write_log(cut, content, (size_t)(end - content));
    verify(&logs, 3, "nobody else has seen the last lines", logs.path[0], cut);
    verify_expecting(&logs, 3, "heads.jwt: has a head that no line here has", heads, logs.path[0], cut);
    write_log(cut, "e30.e30.e30", 11);
    verify_expecting(&logs, 1, "", cut, logs.path[0], logs.path[1]);
    free(content);
    cr_assert_eq(unlink(cut), 0);
    fixture_stop(&logs.fixture);
}

/* Without any audit log, the answer says just that. What is altered in Redis is not signed. */
Test(audit_log, what_is_not_genuine_is_not_signed)
{
    char before[PROCESS_PATH_BYTES], after[PROCESS_PATH_BYTES];
    struct logs logs;

    fixture_start(&logs.fixture, 1, NULL);
    snprintf(before, sizeof before, "%.150s/before.jwt", logs.fixture.folder);
    snprintf(after, sizeof after, "%.150s/after.jwt", logs.fixture.folder);
    fetch_heads(&logs, 0, before);
    redis_server_tell(&logs.fixture.redis, "HSET", fixture_name(logs.fixture.account, "log_heads"), "0011223344556677",
                      "4000000000000 7 nobody", NULL);
    redis_server_tell(&logs.fixture.redis, "EXPIRE", fixture_name(logs.fixture.account, "log_heads"), "60", NULL);
    fetch_heads(&logs, 0, after);
    char *one = read_log(before), *other = read_log(after);
    cr_expect_eq(strlen(one), strlen(other), "none, twice");
    free(one);
    free(other);
    fixture_stop(&logs.fixture);
}

Test(audit_log, belongs_to_one_node)
{
    struct cli_run run;
    struct logs logs;

    start(&logs, 1);
    RUN(&logs.fixture, &run, "serve", "--public-origin", NODE_ORIGIN, "--listen", "127.0.0.1:0", "--internal-listen",
        "127.0.0.1:0", "--audit-log", logs.path[0]);
    cli_expect_refusal(&run, 2, "is in use by another node", "a second node");
    RUN(&logs.fixture, &run, "serve", "--public-origin", NODE_ORIGIN, "--audit-log", "/dev/full");
    cli_expect_refusal(&run, 2, "must be a regular file", "a device");
    RUN(&logs.fixture, &run, "serve", "--public-origin", NODE_ORIGIN, "--audit-log", "/nowhere/a");
    cli_expect_refusal(&run, 2, "Cannot open the audit log", "no folder");
    fixture_stop(&logs.fixture);
}

/* The largest that the node's files may become; RLIM_INFINITY: any. */
static void limit_files(const struct logs *logs, size_t node, rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    cr_assert_eq(prlimit(logs->fixture.nodes[node].process.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

static off_t size_of(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 ? about.st_size : 0;
}

/* A full disk, at any byte of a line: what ends something takes effect, what creates is refused, people sign in. */
Test(audit_log, a_full_disk_confirms_nothing_and_stops_no_revocation)
{
    struct fixture_key key, other;
    struct http_answer answer;
    struct fixture_user ana;
    struct logs logs;

    start(&logs, 1);
    fixture_add_user(&logs.fixture, "ana@north.test", &ana);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    limit_files(&logs, 0, (rlim_t)size_of(logs.path[0]) + 100);
    cr_expect_eq(try_to_revoke(&logs, 0, &key, &answer), 503, "not confirmed");
    cr_expect_not_null(strstr(answer.body, "The audit log cannot be written"), "%s", answer.body);
    cr_expect_eq(fixture_try_key(&logs.fixture, 0, key.secret), 401, "but in effect");
    cr_expect_not(has_line(logs.path[0], "\"api_key.revoked\"", key.id));
    const long waiting = unlogged(&logs, "live");
    cr_expect_eq(fixture_try_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other), 503);
    struct http_call create = {.method = "POST",
                               .target = "/v1/api_keys",
                               .bearer = logs.fixture.manager.secret,
                               .json = "{\"name\":\"b\",\"mode\":\"live\"}"};
    cr_expect_eq(fixture_call(&logs.fixture, 0, &create, &answer), 503);
    cr_expect_not_null(strstr(answer.body, "The audit log cannot be written"), "%s", answer.body);
    cr_expect_eq(unlogged(&logs, "live"), waiting, "it was refused, not created and discarded");
    cr_expect_eq(fixture_login(&logs.fixture, 0, &ana, FIXTURE_PASSWORD, NULL, NULL, &answer), 200, "never deaf");
    cr_expect_eq(fixture_login(&logs.fixture, 0, &ana, "wrong-Horse-battery-9", "000000", NULL, &answer), 401);
    cr_expect_eq(revoke_key(&logs, 0, &key), 200, "it is revoked, and nothing new is to be logged");
    cr_expect_eq(fixture_metric(&logs.fixture, 0, "chatelaine_audit_log_failing"), 1);
    struct http_call call = {.target = "/readyz"};
    cr_expect_eq(http_call(logs.fixture.nodes[0].internal_port, &call, &answer), 200);
    cr_expect_not_null(strstr(answer.body, "The audit log cannot be written"), "%s", answer.body);
    cr_expect_gt(unlogged(&logs, "live"), 0, "the event waits");

    limit_files(&logs, 0, RLIM_INFINITY);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    await_line(logs.path[0], "\"log.torn\"", "\"bytes\":\"");
    await_line(logs.path[0], "\"log.resumed\"", "");
    while (fixture_try_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other) != 201) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the node creates again");
        poll(NULL, 0, 20);
    }
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "was cut short while it was written, as the node noted", logs.path[0], NULL);
    fixture_stop(&logs.fixture);
}

/* Makes what waits in Redis as old as what a node left that was killed long ago. */
static void age_unlogged(struct logs *logs)
{
    static const char SCRIPT[] = "local n = 0 for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do "
                                 "redis.call('XDEL', KEYS[1], e[1]) "
                                 "redis.call('XADD', KEYS[2], '1700000000000-' .. n, unpack(e[2])) n = n + 1 end "
                                 "redis.call('RENAME', KEYS[2], KEYS[1]) return n";
    char reply[64];

    redis_server_ask(&logs->fixture.redis, reply, sizeof reply, "EVAL", SCRIPT, "2",
                     fixture_name(logs->fixture.account, "unlogged:live"), fixture_name(logs->fixture.account, "aged"),
                     NULL);
    cr_assert_gt(strtol(reply, NULL, 10), 0);
}

/* A node changes something, cannot log it, and dies. */
Test(audit_log, another_node_takes_over_what_a_killed_one_left)
{
    struct fixture_key key;
    struct logs logs;

    start(&logs, 2);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    limit_files(&logs, 0, (rlim_t)size_of(logs.path[0]));
    cr_expect_eq(revoke_key(&logs, 0, &key), 503);
    node_kill(&logs.fixture.nodes[0]);
    cr_expect_not(has_line(logs.path[0], "\"api_key.revoked\"", key.id));
    cr_expect_not(has_line(logs.path[1], "\"api_key.revoked\"", key.id));
    hurry(&logs, 1);
    fixture_await_read(&logs.fixture, 1);
    cr_expect_not(has_line(logs.path[1], "\"api_key.revoked\"", key.id), "not while a node may still log it");
    age_unlogged(&logs);
    redis_server_tell(&logs.fixture.redis, "DEL", fixture_name(logs.fixture.account, "log_taker"), NULL);
    hurry(&logs, 1);
    await_line(logs.path[1], "\"api_key.revoked\"", key.id);
    cr_expect(has_line(logs.path[1], "\"api_key.revoked\"", "\"taken_over_from\":\""));
    await_nothing_unlogged(&logs);
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], logs.path[1]);
    fixture_stop(&logs.fixture);
}

/* The trail's bound drops events there, but what no log has yet stays until it is in one. */
Test(audit_log, a_flood_drops_nothing_that_is_in_no_log)
{
    enum { EVENTS = 400 };
    struct fixture_key key, many;
    struct logs logs;
    char name[128], reply[64];

    fixture_start(&logs.fixture, 0, NULL);
    snprintf(logs.path[0], sizeof logs.path[0], "%.150s/audit0.log", logs.fixture.folder);
    fixture_add_node(&logs.fixture, (const char *const[]){"--audit-log", logs.path[0], "--audit-max", "100",
                                                          "--changes-per-minute", "100000", NULL});
    await_published(&logs, 1);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    limit_files(&logs, 0, (rlim_t)size_of(logs.path[0]));
    cr_expect_eq(revoke_key(&logs, 0, &key), 503);
    /* By the store's own verbs, like commands. */
    fixture_open_store(&logs.fixture);
    for (size_t i = 0; i < EVENTS; i++)
        fixture_add_key(&logs.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &many);
    fixture_close_store(&logs.fixture);
    snprintf(name, sizeof name, "%sacct:%s:audit:live", fixture_name(logs.fixture.account, ""), logs.fixture.account);
    redis_server_ask(&logs.fixture.redis, reply, sizeof reply, "XLEN", name, NULL);
    cr_expect_geq(unlogged(&logs, "live") + unlogged(&logs, "people"), EVENTS, "trail: %s", reply);
    limit_files(&logs, 0, RLIM_INFINITY);
    await_line(logs.path[0], "\"log.resumed\"", "");
    hurry(&logs, 0);
    struct deadline deadline = deadline_in(3 * PATIENCE_MS);
    while (unlogged(&logs, "live") + unlogged(&logs, "people") > 1 && deadline_left_ms(deadline) > 0) {
        hurry(&logs, 0);
        poll(NULL, 0, 100);
    }
    cr_expect(has_line(logs.path[0], "\"api_key.created\"", many.id));
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], NULL);
    fixture_stop(&logs.fixture);
}

/* A file that is no longer what the node wrote */

static void remove_log(const struct logs *logs, const char *moved)
{
    (void)moved;
    cr_assert_eq(unlink(logs->path[0]), 0);
}

static void replace_log(const struct logs *logs, const char *moved)
{
    file_write(moved, "");
    cr_assert_eq(rename(moved, logs->path[0]), 0);
}

static void empty_log(const struct logs *logs, const char *moved)
{
    (void)moved;
    cr_assert_eq(truncate(logs->path[0], 0), 0);
}

/* In the middle of its last line. */
static void cut_log(const struct logs *logs, const char *moved)
{
    (void)moved;
    cr_assert_eq(truncate(logs->path[0], size_of(logs->path[0]) - 100), 0);
}

static void move_log(const struct logs *logs, const char *moved)
{
    cr_assert_eq(rename(logs->path[0], moved), 0);
}

static void folder_of(const struct logs *logs, char folder[PROCESS_PATH_BYTES])
{
    snprintf(folder, PROCESS_PATH_BYTES, "%.*s", (int)(strrchr(logs->path[0], '/') - logs->path[0]), logs->path[0]);
}

static void replace_folder(const struct logs *logs, const char *moved)
{
    char folder[PROCESS_PATH_BYTES];

    (void)moved;
    folder_of(logs, folder);
    folder_remove(folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
}

static void move_folder(const struct logs *logs, const char *moved)
{
    char folder[PROCESS_PATH_BYTES], other[PROCESS_PATH_BYTES + 16];

    folder_of(logs, folder);
    snprintf(other, sizeof other, "%s.old", folder);
    cr_assert_eq(rename(folder, other), 0);
    snprintf(other, sizeof other, "%s.old/audit.log", folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_assert_eq(rename(other, moved), 0);
}

/* A node whose log has a folder of its own. */
static void start_in_folder(struct logs *logs)
{
    char folder[PROCESS_PATH_BYTES];

    fixture_start(&logs->fixture, 0, NULL);
    snprintf(folder, sizeof folder, "%.150s/logs", logs->fixture.folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    snprintf(logs->path[0], sizeof logs->path[0], "%.170s/audit.log", folder);
    fixture_add_node(&logs->fixture, (const char *const[]){"--audit-log", logs->path[0], NULL});
    await_published(logs, 1);
}

static void expect_lost(struct logs *logs, const struct fixture_key *key)
{
    await_line(logs->path[0], "\"log.reopened\"", "\"lost_from\":\"");
    losses_expect_told(&logs->fixture, LOSS_AUDIT_LOG, "chatelaine_log_losses_total{log=\"audit\"}");
    cr_expect_eq(revoke_key(logs, 0, key), 200);
    stop_nodes(logs);
    verify_by_redis(logs, 1, "were lost: their file was removed, replaced or cut", logs->path[0], NULL);
    verify_by_redis(logs, 1, "\nBROKEN", logs->path[0], NULL);
}

static const struct harm {
    const char *name;
    void (*inflict)(const struct logs *logs, const char *moved);
    bool loses;
} HARMS[] = {
    {"removed", remove_log, true},        {"replaced", replace_log, true},
    {"emptied", empty_log, true},         {"cut", cut_log, true},
    {"moved", move_log, false},           {"folder replaced", replace_folder, true},
    {"folder moved", move_folder, false},
};

/* At once, and even if nothing is written. */
static void expect_followed(const struct harm *harm)
{
    struct fixture_key key, other;
    char moved[PROCESS_PATH_BYTES];
    struct logs logs;

    start_in_folder(&logs);
    snprintf(moved, sizeof moved, "%.150s/moved", logs.fixture.folder);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    harm->inflict(&logs, moved);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other);
    cr_expect(has_line(logs.path[0], "\"api_key.created\"", other.id), "%s: at once", harm->name);
    if (harm->loses) {
        expect_lost(&logs, &key);
    } else {
        cr_expect_eq(fixture_metric(&logs.fixture, 0, "chatelaine_log_losses_total{log=\"audit\"}"), 0);
        stop_nodes(&logs);
        verify_by_redis(&logs, 0, "Nothing is wrong.", moved, logs.path[0]);
    }
    fixture_stop(&logs.fixture);
}

Test(audit_log, goes_on_at_its_path_if_it_is_removed)
{
    expect_followed(&HARMS[0]);
}

Test(audit_log, goes_on_at_its_path_if_it_is_replaced)
{
    expect_followed(&HARMS[1]);
}

Test(audit_log, goes_on_at_its_path_if_it_is_emptied)
{
    expect_followed(&HARMS[2]);
}

Test(audit_log, goes_on_at_its_path_if_it_is_cut)
{
    expect_followed(&HARMS[3]);
}

Test(audit_log, goes_on_at_its_path_if_it_is_moved)
{
    expect_followed(&HARMS[4]);
}

Test(audit_log, goes_on_at_its_path_if_its_folder_is_replaced)
{
    expect_followed(&HARMS[5]);
}

Test(audit_log, goes_on_at_its_path_if_its_folder_is_moved)
{
    expect_followed(&HARMS[6]);
}

/* As with a full disk, until there is a folder again. */
Test(audit_log, nothing_is_confirmed_while_its_folder_is_gone)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char folder[PROCESS_PATH_BYTES];
    struct fixture_key key, other;
    struct http_answer answer;
    struct logs logs;

    start_in_folder(&logs);
    folder_of(&logs, folder);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    folder_remove(folder);
    cr_expect_eq(try_to_revoke(&logs, 0, &key, &answer), 503, "not confirmed");
    cr_expect_eq(fixture_try_key(&logs.fixture, 0, key.secret), 401, "but in effect");
    losses_await_status(&logs.fixture, "The audit log cannot be written");
    cr_assert_eq(mkdir(folder, 0700), 0);
    while (fixture_try_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other) != 201) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the node creates again");
        poll(NULL, 0, 20);
    }
    cr_expect(has_line(logs.path[0], "\"api_key.created\"", other.id));
    cr_expect(has_line(logs.path[0], "\"log.reopened\"", "\"lost_from\":\"1\""));
    hurry(&logs, 0);
    stop_nodes(&logs);
    verify_by_redis(&logs, 1, "were lost", logs.path[0], NULL);
    fixture_stop(&logs.fixture);
}

/* SIGHUP does not make a rotation of it; and the loss names what was in that file only. */
Test(audit_log, a_loss_does_not_pass_for_a_rotation)
{
    char rotated[PROCESS_PATH_BYTES];
    struct fixture_key key;
    struct logs logs;

    start(&logs, 1);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    snprintf(rotated, sizeof rotated, "%.150s/audit0.log.1", logs.fixture.folder);
    cr_assert_eq(rename(logs.path[0], rotated), 0);
    hurry(&logs, 0);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &key);
    cr_expect(has_line(logs.path[0], "\"log.continued\"", ""));
    cr_assert_eq(unlink(logs.path[0]), 0);
    hurry(&logs, 0);
    await_line(logs.path[0], "\"log.reopened\"", "\"lost_to\":\"");
    stop_nodes(&logs);
    verify_by_redis(&logs, 1, "were lost", rotated, logs.path[0]);
    verify_by_redis(&logs, 1, "continues an earlier file", logs.path[0], NULL);
    fixture_stop(&logs.fixture);
}

static bool is_refused(const struct logs *logs, size_t node)
{
    return fixture_metric(&logs->fixture, node, "chatelaine_audit_log_shared_total") == 1;
}

/* By itself, within a second. */
static void await_claim(const struct logs *logs)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reply[256] = "";

    while (!strstr(reply, "log_writer")) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 20);
        redis_server_ask(&logs->fixture.redis, reply, sizeof reply, "KEYS", "*log_writer:*", NULL);
    }
}

/* Two nodes with one chain would contradict each other, and the verifier would suspect whoever runs them. */
Test(audit_log, a_copied_host_writes_none)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_key key;
    struct logs logs;
    struct cli_run run;
    char *content;

    start(&logs, 1);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    await_claim(&logs);
    content = read_log(logs.path[0]);
    snprintf(logs.path[1], sizeof logs.path[1], "%.150s/copy.log", logs.fixture.folder);
    write_log(logs.path[1], content, strlen(content));
    free(content);
    fixture_add_node(&logs.fixture, (const char *const[]){"--audit-log", logs.path[1], NULL});
    while (!is_refused(&logs, 1) && deadline_left_ms(deadline) > 0) {
        hurry(&logs, 0);
        poll(NULL, 0, 100);
    }
    cr_expect_eq(fixture_try_create_key(&logs.fixture, 1, "{\"name\":\"b\",\"mode\":\"live\"}", &key), 503);
    fixture_create_key(&logs.fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &key);
    losses_await_status(&logs.fixture, LOSSES[LOSS_IDENTITY].sentence);
    RUN(&logs.fixture, &run, "doctor", "--json", "--public-origin", NODE_ORIGIN);
    cr_expect_not_null(strstr(run.out, "\"name\":\"shared-identity\",\"status\":\"warn\""), "%s", run.out);
    cli_finish(&run);
    cr_expect_eq(fixture_metric(&logs.fixture, 0, "chatelaine_audit_log_shared_total"), 0);
    cr_expect(file_contains(logs.fixture.nodes[1].process.err_path, LOSSES[LOSS_IDENTITY].message));
    stop_nodes(&logs);
    verify_by_redis(&logs, 0, "Nothing is wrong.", logs.path[0], logs.path[1]);
    fixture_stop(&logs.fixture);
}
