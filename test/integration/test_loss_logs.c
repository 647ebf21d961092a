/* A store that went back while no node was there to remember: the nodes' logs on disk say what it has lost
 * (src/lease/README.md, rule 13). */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(loss_logs, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, LOG_LINES = 1500, PATH_BYTES = PROCESS_PATH_BYTES + 32 };

static struct fixture fixture;
static struct fixture_key revoked, kept;
static char paths[NODES][PATH_BYTES];

static void start_node(size_t node, const char *option, const char *name)
{
    fixture_start_node(&fixture, node, name, fixture.redis.url,
                       (const char *const[]){"--lease-ms", "1000", option, paths[node], NULL});
}

static void revoke_key(void)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", revoked.id);
    cr_assert_eq(
        fixture_call(&fixture, 0,
                     &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret},
                     &answer),
        200, "%s", answer.body);
}

/* A key was revoked at the first node, then all were stopped, and the store is as it was before. */
static void lose(const char *option)
{
    fixture_use_one_redis("the files of one Redis are put back");
    fixture_start(&fixture, 0, NULL);
    for (size_t node = 0; node < NODES; node++) {
        snprintf(paths[node], sizeof paths[node], "%.150s/log-of-%zu", fixture.folder, node);
        start_node(node, option, node == 0 ? "a" : "b");
    }
    fixture_create_key(&fixture, 0, "{\"name\":\"revoked\",\"mode\":\"live\"}", &revoked);
    fixture_create_key(&fixture, 0, "{\"name\":\"kept\",\"mode\":\"live\"}", &kept);
    redis_server_keep(&fixture.redis);
    revoke_key();
    for (size_t node = 0; node < NODES; node++)
        node_stop(&fixture.nodes[node]);
    redis_server_put_back(&fixture.redis);
}

static void start_again(const char *option)
{
    start_node(0, option, "a-again");
    start_node(1, option, "b-again");
    fixture.node_count = NODES;
}

static void expect_refused(void)
{
    for (size_t node = 0; node < NODES; node++) {
        cr_expect_eq(fixture_try_key(&fixture, node, revoked.secret), 401, "node %zu", node);
        cr_expect_eq(fixture_try_key(&fixture, node, kept.secret), 200, "node %zu", node);
    }
}

static void expect_logged(size_t node, const char *part, bool is_wanted)
{
    char *log = node_log(&fixture.nodes[node]);

    cr_expect_eq(strstr(log, part) != NULL, is_wanted, "%s: %s", part, log);
    free(log);
}

static void append(const char *path, const char *text, size_t times)
{
    FILE *file = fopen(path, "a");

    cr_assert(file);
    for (size_t i = 0; i < times; i++)
        fputs(text, file);
    fclose(file);
}

Test(loss_logs, a_revocation_log_brings_back_what_all_nodes_have_forgotten)
{
    lose("--revocation-log");
    start_again("--revocation-log");
    expect_refused();
    expect_logged(0, "lost revocations were repeated at Redis", true);
    expect_logged(1, "lost revocations were repeated at Redis", false);
    fixture_stop(&fixture);
}

Test(loss_logs, an_audit_log_does_the_same)
{
    lose("--audit-log");
    start_again("--audit-log");
    expect_refused();
    expect_logged(0, "lost revocations were repeated at Redis", true);
    fixture_stop(&fixture);
}

Test(loss_logs, a_log_that_was_just_renamed_counts_as_well)
{
    char renamed[PATH_BYTES + 16], compressed[PATH_BYTES + 16];

    lose("--revocation-log");
    snprintf(renamed, sizeof renamed, "%s-20260131", paths[0]);
    snprintf(compressed, sizeof compressed, "%s-20260201.gz", paths[0]);
    cr_assert_eq(rename(paths[0], renamed), 0);
    file_write(compressed, "later");
    start_again("--revocation-log");
    expect_refused();
    fixture_stop(&fixture);
}

/* Keys that were created after what came back say nothing about those before. */
Test(loss_logs, a_log_is_read_whatever_stands_behind_the_line)
{
    char unknown[256], *endless = calloc(1, 400 * 1024);

    lose("--revocation-log");
    cr_assert(endless);
    memset(endless, 'x', 400 * 1024 - 1);
    snprintf(unknown, sizeof unknown, "2026-01-31T12:00:00.000Z key_00000000000000000000000000 %s\n", fixture.account);
    append(paths[0], unknown, LOG_LINES);
    append(paths[0], endless, 1);
    append(paths[0], "\n", LOG_LINES);
    append(paths[0], unknown, 1);
    append(paths[0], "2026-01-31T12:00:00.000Z key_0000000", 1);
    start_again("--revocation-log");
    expect_refused();
    expect_logged(0, "unknown=1501", true);
    expect_logged(0, "a log has lines that cannot be read", true);
    free(endless);
    fixture_stop(&fixture);
}

/* As a node of 0.3.0 wrote it, without a store, and then as a node of another store. */
static void rewrite(const char *path, const char *store)
{
    char *content = file_read(path), *at, text[512];

    cr_assert(at = strstr(content, " store="), "%s", content);
    *at = '\0';
    snprintf(text, sizeof text, "%s%s\n", content, store);
    file_write(path, text);
    free(content);
}

Test(loss_logs, lines_of_an_earlier_version_count)
{
    lose("--revocation-log");
    rewrite(paths[0], "");
    start_again("--revocation-log");
    expect_refused();
    fixture_stop(&fixture);
}

Test(loss_logs, lines_of_another_store_do_not)
{
    lose("--revocation-log");
    rewrite(paths[0], " store=00000000000000000000000000000000");
    start_again("--revocation-log");
    cr_expect_eq(fixture_try_key(&fixture, 0, revoked.secret), 200);
    expect_logged(0, "a log has lines of another store", true);
    fixture_stop(&fixture);
}

/* The node serves: it cannot know more. */
Test(loss_logs, a_log_that_cannot_be_read_is_reported)
{
    lose("--revocation-log");
    unlink(paths[0]);
    cr_assert_eq(mkfifo(paths[0], 0600), 0);
    start_again("--revocation-log");
    cr_expect_eq(fixture_try_key(&fixture, 0, kept.secret), 200);
    expect_logged(0, "a log cannot be compared with Redis", true);
    fixture_stop(&fixture);
}

/* Nothing was lost, and nothing is written. */
Test(loss_logs, a_start_without_a_loss_changes_nothing)
{
    fixture_use_one_redis("as the others");
    fixture_start(&fixture, 0, NULL);
    snprintf(paths[0], sizeof paths[0], "%.150s/log", fixture.folder);
    start_node(0, "--revocation-log", "a");
    fixture_create_key(&fixture, 0, "{\"name\":\"revoked\",\"mode\":\"live\"}", &revoked);
    revoke_key();
    node_stop(&fixture.nodes[0]);
    start_node(0, "--revocation-log", "b");
    fixture.node_count = 1;
    cr_expect_eq(fixture_try_key(&fixture, 0, revoked.secret), 401);
    expect_logged(0, "revocations=1 lost=0 unknown=0", true);
    expect_logged(0, "lost revocations", false);
    fixture_stop(&fixture);
}
