/* The canary (src/auth/README.md#the-canary). With CHATELAINE_BREAK in the environment and a program that can break
 * rules (scripts/canary), the tests named "violation" expect to see one. */
#include "base/json.h"
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis_proxy.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(canary, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static const char *const EACH_SECOND[] = {"--canary-interval-ms", "1s", NULL};
static const char *const OFF[] = {"--canary-interval-ms", "0", NULL};
enum { LATE_MS = 1500 };

static int64_t number_in(const struct json *canary, const char *name)
{
    const struct json *value = json_member(canary, name);
    int64_t number = -1; /* null: never */

    if (json_type(value) == JSON_NUMBER)
        cr_assert(json_integer(value, &number));
    return number;
}

/* What 'status' says of it; the caller frees the document. */
static struct json *read_canary(struct fixture *fixture, const struct json **ret_canary)
{
    struct json *document;
    struct cli_run run;

    RUN(fixture, &run, "status", "--json");
    document = json_parse_object(text_of(run.out), NULL);
    cr_assert(document, "%s%s", run.out, run.err);
    *ret_canary = json_member(document, "canary");
    cli_finish(&run);
    return document;
}

static int64_t canary_number(struct fixture *fixture, const char *name)
{
    const struct json *canary;
    struct json *document = read_canary(fixture, &canary);
    int64_t number = number_in(canary, name);

    json_free(document);
    return number;
}

static void await_number(struct fixture *fixture, const char *name, int64_t at_least)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int64_t number;

    while ((number = canary_number(fixture, name)) < at_least) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s is %lld, not %lld", name, (long long)number,
                     (long long)at_least);
        poll(NULL, 0, 100);
    }
}

/* As many more runs in every partition, on average. */
static void await_runs(struct fixture *fixture, int64_t more)
{
    await_number(fixture, "runs", canary_number(fixture, "runs") + more * fixture_partitions());
}

static long sum_of_metric(const struct fixture *fixture, const char *line_start)
{
    long sum = 0;

    for (size_t i = 0; i < fixture->node_count; i++)
        if (fixture->nodes[i].process.pid)
            sum += fixture_metric(fixture, i, line_start);
    return sum;
}

/* Until the last run asked that many nodes, and all of them refused. runner: it was the run of this node; NULL: any. */
static void await_refusals_by(struct fixture *fixture, int64_t nodes, const struct node *runner)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char address[16] = "";
    bool is_seen;

    if (runner)
        snprintf(address, sizeof address, ":%u", runner->port);
    do {
        const struct json *canary;
        struct json *document = read_canary(fixture, &canary);
        const struct json *last = json_member(canary, "last_run_by"); /* null: nobody */
        struct text by = json_type(last) == JSON_STRING ? json_text(last) : TEXT("");

        cr_assert_gt(deadline_left_ms(deadline), 0, "%.*s", TEXT_ARG(by));
        is_seen = number_in(canary, "nodes_refused") == nodes && number_in(canary, "nodes_silent") == 0 &&
                  memmem(by.ptr, by.len, address, strlen(address));
        json_free(document);
        poll(NULL, 0, 100);
    } while (!is_seen);
}

static void await_refusals(struct fixture *fixture, int64_t nodes)
{
    await_refusals_by(fixture, nodes, NULL);
}

Test(canary, asks_every_node)
{
    struct fixture fixture;

    fixture_start(&fixture, 3, EACH_SECOND);
    await_runs(&fixture, 2);
    await_refusals(&fixture, 3);
    cr_expect_gt(canary_number(&fixture, "effect_us"), 0);
    cr_expect_geq(canary_number(&fixture, "last_node_refused_within_ms"), 0);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    cr_expect_eq(sum_of_metric(&fixture, "chatelaine_canary_violations_total"), 0);
    cr_expect_geq(sum_of_metric(&fixture, "chatelaine_canary_runs_total{result=\"finished\"}"), 2);
    cr_expect_geq(sum_of_metric(&fixture, "chatelaine_canary_effect_seconds_count"), 2);
    cr_expect_eq(fixture_metric(&fixture, 1, "chatelaine_canary_interval_seconds"), 1);
    cr_expect_gt(fixture_metric(&fixture, 1, "chatelaine_canary_last_run_timestamp_seconds"), 1700000000);
    fixture_stop(&fixture);
}

static long count_names(const struct fixture *fixture, const char *pattern)
{
    char storage[64 * 1024], *rest = storage, *name;
    long names = 0;

    for (const struct redis_server *server = &fixture->redis; server; server = server->next) {
        redis_server_ask(server, storage, sizeof storage, "KEYS", pattern, NULL);
        for (rest = storage; (name = strsep(&rest, "\n"));)
            names += name[0] != '\0';
    }
    return names;
}

/* No list, count, event, usage or note. When no run is under way, only its state is in Redis. */
Test(canary, leaves_nothing_behind)
{
    struct fixture fixture;
    struct cli_run run;
    char log[PROCESS_PATH_BYTES + 16];

    fixture_start(&fixture, 0, NULL);
    snprintf(log, sizeof log, "%s/audit.log", fixture.folder);
    fixture_add_node(&fixture, (const char *const[]){"--canary-interval-ms", "1s", "--audit-log", log,
                                                     "--usage-flush-ms", "20", NULL});
    await_runs(&fixture, 3);
    RUN(&fixture, &run, "account", "list", "--json");
    cr_expect_null(strstr(run.out, "canary"), "%s", run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN);
    cr_expect_null(strstr(run.out, "canary"), "%s", run.out);
    cli_finish(&run);
    node_stop(&fixture.nodes[0]);
    cr_expect_eq(count_names(&fixture, "*acct_0000000000canary*"), 0);
    cr_expect_leq(count_names(&fixture, "*key:*"), 1 + (long)fixture_partitions(), "the manager's, and those of runs");
    cr_expect_eq(count_names(&fixture, "*canary_nodes*"), 0);
    cr_expect_eq(fixture_sum(&fixture, "XLEN", "unlogged:test"), 0);
    FILE *lines = fopen(log, "r");
    char line[4096];
    while (fgets(line, sizeof line, lines))
        cr_expect_null(strstr(line, "api_key.revoked"), "%s", line);
    fclose(lines);
    fixture_stop(&fixture);
}

Test(canary, is_off)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, OFF);
    poll(NULL, 0, 3000);
    cr_expect_eq(count_names(&fixture, "*canary*"), 0);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_canary_interval_seconds"), 0);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_canary_last_run_timestamp_seconds"), 0);
    cr_expect_eq(canary_number(&fixture, "interval_ms"), 0);
    fixture_stop(&fixture);
}

/* A node that is paused has no answer, and is no violation. Before that it takes part, and afterwards again. */
Test(canary, a_paused_node_is_silent)
{
    struct fixture fixture;

    fixture_start(&fixture, 2, EACH_SECOND);
    await_refusals(&fixture, 2);
    process_signal(&fixture.nodes[1].process, SIGSTOP);
    await_refusals(&fixture, 1);
    process_signal(&fixture.nodes[1].process, SIGCONT);
    await_refusals(&fixture, 2);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    fixture_stop(&fixture);
}

/* Redis hangs for longer than anybody waits: runs are given up, and go on afterwards. */
Test(canary, outlives_a_frozen_redis)
{
    static const char *const HASTY[] = {"--canary-interval-ms", "1s", "--redis-timeout-ms", "1s", NULL};
    struct fixture fixture;

    fixture_use_one_redis("all primaries would have to be frozen");
    fixture_start(&fixture, 2, HASTY);
    await_refusals(&fixture, 2);
    for (int times = 0; times < 3; times++) {
        redis_server_freeze(&fixture.redis);
        poll(NULL, 0, 3000);
        redis_server_thaw(&fixture.redis);
        await_runs(&fixture, 1);
    }
    await_refusals(&fixture, 2);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    fixture_stop(&fixture);
}

#define NEW_KEY "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"

static void write_key(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert_eq(chmod(path, 0600), 0);
}

/* While master keys are rotated, each node computes the secrets of runs of the other one: here both nodes have both
 * keys, and different ones are the current ones. */
Test(canary, master_keys_differ)
{
    char old_path[PROCESS_PATH_BYTES], new_path[PROCESS_PATH_BYTES];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(old_path, sizeof old_path, "%.150s/old.key", fixture.folder);
    snprintf(new_path, sizeof new_path, "%.150s/new.key", fixture.folder);
    rename(fixture.master_key_path, old_path);
    write_key(new_path, NEW_KEY);
    snprintf(fixture.master_key_path, sizeof fixture.master_key_path, "%s", new_path);
    const char *const rotate[] = {"master-key", "rotate", "--retired-master-key-file", old_path, NULL};
    cr_assert_eq(fixture_run(&fixture, rotate, NULL, NULL, NULL), 0);
    for (size_t node = 0; node < 2; node++) {
        const char *more[] = {"--canary-interval-ms", "1s", "--retired-master-key-file", node ? new_path : old_path,
                              NULL};

        snprintf(fixture.master_key_path, sizeof fixture.master_key_path, "%s", node ? old_path : new_path);
        fixture_add_node(&fixture, more);
    }
    for (size_t node = 0; node < 2; node++)
        await_refusals_by(&fixture, 2, &fixture.nodes[node]);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    fixture_stop(&fixture);
}

/* Whichever runs it, sooner or later it is killed during a run. */
Test(canary, a_killed_node_is_replaced)
{
    struct fixture fixture;

    fixture_start(&fixture, 3, EACH_SECOND);
    await_refusals(&fixture, 3);
    node_kill(&fixture.nodes[0]);
    await_refusals(&fixture, 2);
    node_kill(&fixture.nodes[1]);
    await_refusals(&fixture, 1);
    await_runs(&fixture, 2);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    fixture_stop(&fixture);
}

static bool is_under_way(const struct fixture *fixture)
{
    char holder[64];

    redis_server_ask(&fixture->redis, holder, sizeof holder, "GET", fixture_name_in(0, "canary_runner"), NULL);
    return strcmp(holder, "(nil)") != 0;
}

/* While it runs the canary of partition 0. */
static void pause_runner(struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (;;) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        if (!is_under_way(fixture)) {
            poll(NULL, 0, 20);
            continue;
        }
        process_signal(&fixture->nodes[0].process, SIGSTOP);
        poll(NULL, 0, 100); /* what it has sent arrives */
        if (is_under_way(fixture))
            return;
        process_signal(&fixture->nodes[0].process, SIGCONT);
    }
}

/* Or more, on a busy machine: with this interval all nodes must have used a key within 250 ms. */
static void expect_unfinished(struct fixture *fixture, int64_t count)
{
    const struct json *canary;
    struct json *document = read_canary(fixture, &canary);

    if (number_in(canary, "unfinished_runs") != count)
        cr_expect(text_equal(json_text(json_member(canary, "unfinished_because")), TEXT("no node could use its key")));
    json_free(document);
}

/* Another node takes over, and the one that was paused does not go on with its run. */
Test(canary, a_paused_runner_is_replaced)
{
    struct fixture fixture;
    int64_t unfinished;

    fixture_start(&fixture, 1, EACH_SECOND);
    pause_runner(&fixture);
    fixture_add_node(&fixture, EACH_SECOND);
    await_number(&fixture, "unfinished_runs", 1);
    await_runs(&fixture, 1);
    process_signal(&fixture.nodes[0].process, SIGCONT);
    await_refusals(&fixture, 2);
    unfinished = canary_number(&fixture, "unfinished_runs");
    await_runs(&fixture, 2);
    expect_unfinished(&fixture, unfinished);
    cr_expect_eq(canary_number(&fixture, "violations"), 0);
    fixture_stop(&fixture);
}

/* One node hears invalidations late, and everything else at once. So a revocation must wait for it. If it does not
 * (rule 7 broken), that node still accepts the key when it is asked. With the interval that nodes have by themselves,
 * this is seen within two minutes. */
static void start_late_node(struct fixture *fixture, struct redis_proxy **ret_proxy, const char *const *more)
{
    char url[64];

    fixture_use_one_redis("the proxy stands before one Redis");
    fixture_start(fixture, 1, more);
    *ret_proxy = redis_proxy_start(fixture->redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_proxy_port(*ret_proxy, 0));
    fixture_start_node(fixture, 1, "late", url, more);
    fixture->node_count = 2;
    redis_proxy_delay(*ret_proxy, 0, REDIS_PROXY_INVALIDATIONS, REDIS_PROXY_TO_NODE, LATE_MS);
}

Test(canary, violation_or_not_by_a_node_that_hears_late)
{
    bool is_broken = getenv("CHATELAINE_BREAK");
    const char *interval = getenv("CHATELAINE_TEST_CANARY_INTERVAL");
    const char *more[] = {"--lease-ms", "8s", "--canary-interval-ms", interval ? interval : "2s", NULL};
    struct redis_proxy *proxy;
    struct fixture fixture;

    start_late_node(&fixture, &proxy, more);
    if (is_broken) {
        int64_t began_ms = deadline_now_ms();

        await_number(&fixture, "violations", 1);
        cr_log_info("seen after %lld ms", (long long)(deadline_now_ms() - began_ms));
        cr_expect_geq(fixture_metric(&fixture, 1, "chatelaine_canary_violations_total"), 1);
        cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_canary_violations_total"), 0);
    } else {
        await_refusals(&fixture, 2);
        await_runs(&fixture, 2);
        cr_expect_eq(canary_number(&fixture, "violations"), 0);
        cr_expect_geq(canary_number(&fixture, "effect_us"), LATE_MS * 1000 * 9 / 10, "it waited for the late node");
    }
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
}
