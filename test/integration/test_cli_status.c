/* 'status': what operators see of nodes and Redis, whatever state they are in. */
#include "cli.h"
#include "base/json.h"
#include "deadline.h"
#include "leak_guard.h"
#include "losses.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cli_status, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* Its changes would be counted. */
static const char *const NO_CANARY[] = {"--canary-interval-ms", "0", NULL};

static struct json *read_status(struct fixture *fixture, int *ret_code)
{
    struct cli_run run;

    RUN(fixture, &run, "status", "--json");
    struct json *document = json_parse_object(text_of(run.out), NULL);
    cr_assert(document, "%s%s", run.out, run.err);
    *ret_code = run.exit_code;
    cli_finish(&run);
    return document;
}

static size_t count_of(const struct json *document, const char *list)
{
    size_t count = 0;

    for (const struct json *item = json_first(json_member(document, list)); item; item = json_next(item))
        count++;
    return count;
}

static bool has_problem(const struct json *document, const char *says)
{
    const struct json *problem = json_first(json_member(document, "problems"));

    for (; problem; problem = json_next(problem))
        if (memmem(json_text(problem).ptr, json_text(problem).len, says, strlen(says)))
            return true;
    return false;
}

/* A cluster without replicas is served with --unsafe-redis, which is a problem of each node. */
static bool is_well(const struct json *document, int code)
{
    const struct json *problem = json_first(json_member(document, "problems"));
    const struct text unsafe = TEXT("--unsafe-redis: ");

    for (; problem; problem = json_next(problem))
        if (!getenv("CHATELAINE_UNSAFE_REDIS") ||
            !memmem(json_text(problem).ptr, json_text(problem).len, unsafe.ptr, unsafe.len))
            return false;
    return code == (count_of(document, "problems") == 0 ? 0 : 3);
}

/* Until as many nodes report with that lease. Leaves the status for the caller to free. */
static struct json *await_nodes(struct fixture *fixture, size_t nodes, const char *lease, int *ret_code)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (;;) {
        struct json *document = read_status(fixture, ret_code);
        const struct json *node = json_first(json_member(document, "nodes"));
        size_t fitting = 0;

        for (; node; node = json_next(node))
            fitting += text_equal(json_text(json_member(node, "lease")), text_of(lease));
        if (fitting == nodes && count_of(document, "nodes") == nodes)
            return document;
        json_free(document);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%zu nodes with lease %s", fitting, lease);
        poll(NULL, 0, 100);
    }
}

static void await_problem(struct fixture *fixture, const char *says)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_found = false;

    while (!is_found) {
        int code;
        struct json *document = read_status(fixture, &code);

        is_found = has_problem(document, says);
        json_free(document);
        cr_assert(!is_found || code == 3);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", says);
        poll(NULL, 0, is_found ? 0 : 100);
    }
}

Test(cli_status, without_a_node)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "status");
    cr_expect_eq(run.exit_code, 3);
    cr_expect(strstr(run.out, "No node reports: none runs"), "%s", run.out);
    cr_expect(strstr(run.out, "\nDegraded: 1 problem.\n"), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli_status, nodes_report_and_withdraw)
{
    struct fixture fixture;
    struct fixture_key key;
    int code;

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    struct json *document = await_nodes(&fixture, 2, "held", &code);
    cr_expect(is_well(document, code));
    const struct json *node = json_first(json_member(document, "nodes"));
    cr_expect(text_equal(json_text(json_member(node, "version")), TEXT(CHATELAINE_VERSION)));
    cr_expect_eq(json_text(json_member(node, "membership")).len, 32);
    int64_t unnamed = -1;
    cr_expect(json_integer(json_member(document, "unnamed_memberships"), &unnamed));
    cr_expect_eq(unnamed, 0, "every membership has a name");
    json_free(document);

    node_stop(&fixture.nodes[1]);
    document = await_nodes(&fixture, 1, "held", &code);
    cr_expect(is_well(document, code), "a node that has drained is not missed");
    json_free(document);
    fixture_stop(&fixture);
}

/* One partition is lost to the node: its store has another id. */
Test(cli_status, nodes_tell_of_every_partition)
{
    struct fixture fixture;
    char why[128];
    int code;

    setenv("CHATELAINE_PARTITIONS", "2", 1);
    fixture_start(&fixture, 1, NULL);
    struct json *document = await_nodes(&fixture, 1, "held", &code);
    cr_expect(is_well(document, code));
    json_free(document);
    redis_server_tell(&fixture.redis, "HSET", fixture_name_in(1, "store"), "id", "ffffffffffffffffffffffffffffffff",
                      NULL);
    json_free(await_nodes(&fixture, 1, "lost", &code));
    await_problem(&fixture, ": No lease in some partitions");
    snprintf(why, sizeof why, ":%u: Partition 1: Redis holds another store", fixture.nodes[0].port);
    await_problem(&fixture, why);
    fixture_stop(&fixture);
}

Test(cli_status, nodes_tell_how_long_revocations_take)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture fixture;
    struct fixture_key key;
    struct http_answer answer;
    bool is_told = false;
    char target[64];

    fixture_start(&fixture, 1, NO_CANARY);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    const struct http_call revoke = {.method = "DELETE", .target = target, .bearer = fixture.manager.secret};
    cr_assert_eq(fixture_call(&fixture, 0, &revoke, &answer), 200);
    while (!is_told) {
        struct cli_run run;

        RUN(&fixture, &run, "status");
        is_told = strstr(run.out, "    1 revocation, p99 ") != NULL;
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", run.out);
        cli_finish(&run);
        poll(NULL, 0, is_told ? 0 : 200);
    }
    fixture_stop(&fixture);
}

Test(cli_status, a_node_without_cache_has_no_lease_and_is_well)
{
    struct fixture fixture;
    int code;

    fixture_use_one_redis("nodes of a cluster need leases");
    fixture_start(&fixture, 1, (const char *const[]){"--lease-ms", "0", NULL});
    struct json *document = await_nodes(&fixture, 1, "none", &code);
    cr_expect(is_well(document, code));
    json_free(document);
    fixture_stop(&fixture);
}

static bool status_hints(struct fixture *fixture, const char *says)
{
    struct cli_run run;

    RUN(fixture, &run, "status");
    bool is_said = strstr(run.out, says);
    cli_finish(&run);
    return is_said;
}

static void await_hint(struct fixture *fixture, const char *says)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!status_hints(fixture, says)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", says);
        poll(NULL, 0, 100);
    }
}

static void set_longest_lease(const struct fixture *fixture, const char *longest)
{
    redis_server_tell(&fixture->redis, "SET", fixture_name_in(0, "lease_max"), longest, NULL);
}

/* Only if no node has a longer lease: one that is silent may have one. */
Test(cli_status, a_longest_lease_that_can_be_lowered)
{
    static const char HINT[] = "\n  no node's lease is longer than 2000 ms: 'chatelaine store lower-lease --lease-ms "
                               "2000ms' lets revocations wait less\n";
    struct fixture fixture;
    int code;

    fixture_start(&fixture, 1, (const char *const[]){"--lease-ms", "1000", NULL});
    fixture_add_node(&fixture, (const char *const[]){"--lease-ms", "2000", NULL});
    json_free(await_nodes(&fixture, 2, "held", &code));
    cr_expect_not(status_hints(&fixture, "lower-lease"));
    set_longest_lease(&fixture, "3000");
    await_hint(&fixture, HINT);
    node_kill(&fixture.nodes[0]);
    await_problem(&fixture, ": silent for ");
    cr_expect_not(status_hints(&fixture, "lower-lease"));
    fixture_stop(&fixture);
}

/* Whether one of the texts in a list stands in a line behind the given one. */
static bool has_any(const char *log, const char *before, const struct json *list)
{
    for (const char *at = log; (at = strstr(at, before)); at++)
        for (const struct json *item = json_first(list); item; item = json_next(item))
            if (memmem(at, strcspn(at, "\n"), json_text(item).ptr, json_text(item).len))
                return true;
    return false;
}

/* The registry and the log name memberships; status tells which nodes they are, even after their end. */
Test(cli_status, a_killed_node_is_missed_and_named)
{
    char name[256], line[128];
    struct fixture fixture;
    struct fixture_key key;
    struct cli_run run;
    int code;

    fixture_start(&fixture, 2, NULL);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    json_free(await_nodes(&fixture, 2, "held", &code));
    node_kill(&fixture.nodes[1]);
    struct json *document = read_status(&fixture, &code);
    const struct json *node = json_first(json_member(document, "nodes"));
    char port[16];
    snprintf(port, sizeof port, ":%u", fixture.nodes[1].port);
    while (node && !memmem(json_text(json_member(node, "address")).ptr, json_text(json_member(node, "address")).len,
                           port, strlen(port)))
        node = json_next(node);
    cr_assert(node);
    snprintf(name, sizeof name, "%.*s", TEXT_ARG(json_text(json_member(node, "name"))));

    struct http_answer answer;
    char target[64];
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    cr_assert_eq(
        fixture_call(&fixture, 0,
                     &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret},
                     &answer),
        200);
    char *log = node_log(&fixture.nodes[0]);
    cr_expect(has_any(log, "memberships=", json_member(node, "memberships")), "the log names it: %s", log);
    free(log);
    json_free(document);

    /* As if a minute had passed. */
    redis_server_tell(&fixture.redis, "EVAL",
                      "local t = redis.call('TIME') "
                      "return redis.call('ZADD', KEYS[1], (t[1] - 60) * 1000, ARGV[1])",
                      "1", fixture_name(NULL, "reports"), name, NULL);
    RUN(&fixture, &run, "status");
    cr_expect_eq(run.exit_code, 3);
    snprintf(line, sizeof line, "%.80s: silent for ", name);
    const char *silent = strstr(run.out, line);
    cr_expect(silent && strtol(silent + strlen(line), NULL, 10) >= 60, "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli_status, reasons_of_nodes_are_problems)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    await_problem(&fixture, "127.0.0.1:");
    await_problem(&fixture, "Redis, appendfsync: ");
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "appendfsync", "always", NULL);
    int code;
    struct json *document;
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool has_recovered;
    do {
        document = read_status(&fixture, &code);
        has_recovered = is_well(document, code);
        json_free(document);
        cr_assert_gt(deadline_left_ms(deadline), 0);
    } while (!has_recovered);
    fixture_stop(&fixture);
}

Test(cli_status, without_redis_and_at_a_replica)
{
    char port[16];
    struct fixture fixture;
    struct redis_server replica;
    struct cli_run run;

    setenv("CHATELAINE_REDIS_TIMEOUT_MS", "3000", 1); /* is waited for several times */
    fixture_start(&fixture, 0, NULL);
    redis_server_start(&replica, NULL);
    redis_server_open_port(&fixture.redis);
    snprintf(port, sizeof port, "%u", fixture.redis.port);
    redis_server_tell(&replica, "REPLICAOF", "127.0.0.1", port, NULL);
    cli_run_bare(&fixture, &run, (const char *const[]){"status", "--json", "--redis", replica.url, NULL});
    cr_expect_eq(run.exit_code, 3, "%s", run.err);
    cr_expect(strstr(run.out, "replica"), "%s", run.out);
    cr_expect(strstr(run.out, "\"degraded\":true"), "%s", run.out);
    cli_finish(&run);
    redis_server_kill(&replica);
    cli_run_bare(&fixture, &run, (const char *const[]){"status", "--redis", replica.url, NULL});
    cr_expect_eq(run.exit_code, 3, "%s", run.err);
    cr_expect(strstr(run.out, "Nodes: unknown"), "%s", run.out);
    cr_expect(strstr(run.out, "Redis cannot be reached"), "%s", run.out);
    cli_finish(&run);
    redis_server_stop(&replica);
    fixture_stop(&fixture);
}

Test(cli_status, with_another_master_key)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    snprintf(path, sizeof path, "%.150s/other.key", fixture.folder);
    file_write(path, "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff");
    cli_run_bare(&fixture, &run,
                 (const char *const[]){"status", "--redis", fixture.redis.url, "--master-key-file", path, NULL});
    cr_expect_eq(run.exit_code, 3);
    cr_expect(strstr(run.out, "Redis, master-key: "), "%s", run.out);
    cli_finish(&run);
    cli_run_bare(&fixture, &run, (const char *const[]){"status", "--redis", fixture.redis.url, NULL});
    cr_expect(strstr(run.out, "not looked at: pass --master-key-file"), "%s", run.out);
    cr_expect_null(strstr(run.out, "Redis, master-key: "), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(cli_status, reports_that_others_wrote)
{
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 0, NULL);
    fixture.wrote_names = true;
    redis_server_tell(&fixture.redis, "EVAL",
                      "redis.call('SET', KEYS[1] .. 'report:ev\27il', '{\"host\":\"\27[2J') "
                      "local t = redis.call('TIME') "
                      "return redis.call('ZADD', KEYS[1] .. 'reports', t[1] * 1000, 'ev\27il')",
                      "1", fixture_name(NULL, ""), NULL);
    RUN(&fixture, &run, "status");
    cr_expect_eq(run.exit_code, 3);
    cr_expect(strstr(run.out, "il: its report cannot be read."), "%s", run.out);
    cr_expect_null(strchr(run.out, '\x1b'));
    cli_finish(&run);
    fixture_stop(&fixture);
}

/* The hash `store` but for the store's time, which heartbeats write. */
static void ask_store(const struct fixture *fixture, char *ret_fields, size_t size)
{
    static const char FIELDS[] = "local hash, fields = redis.call('HGETALL', KEYS[1]), {} "
                                 "for i = 1, #hash, 2 do if hash[i] ~= 'time' and hash[i] ~= 'ahead' then "
                                 "fields[#fields + 1] = hash[i] .. ' ' .. hash[i + 1] end end "
                                 "table.sort(fields) return table.concat(fields, ' ')";

    redis_server_ask(&fixture->redis, ret_fields, size, "EVAL", FIELDS, "1", fixture_name(fixture->account, "store"),
                     NULL);
}

/* A report is no change: it carries no number, and a Redis that forbids it harms nothing else. */
Test(cli_status, a_node_that_may_not_report_serves)
{
    char before[256], after[256];
    struct fixture fixture;
    int code;

    fixture_start(&fixture, 1, NO_CANARY);
    json_free(await_nodes(&fixture, 1, "held", &code));
    ask_store(&fixture, before, sizeof before);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    await_problem(&fixture, "127.0.0.1:");
    ask_store(&fixture, after, sizeof after);
    cr_expect_str_eq(after, before, "no number of a change");
    fixture.wrote_names = true;
    redis_server_tell(&fixture.redis, "DEL", fixture_name(NULL, "reports"), NULL);
    redis_server_tell(&fixture.redis, "SET", fixture_name(NULL, "reports"), "in the way", NULL);
    redis_server_tell_all(&fixture.redis, "CONFIG", "SET", "appendfsync", "always", NULL);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool has_failed = false;
    while (!has_failed) {
        char *log = node_log(&fixture.nodes[0]);

        has_failed = strstr(log, "WRONGTYPE") != NULL;
        free(log);
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, has_failed ? 0 : 50);
    }
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    ask_store(&fixture, after, sizeof after);
    cr_expect_str_eq(after, before);
    fixture_stop(&fixture);
}

/* The policy's content counts, not its path, and a reload. */
Test(cli_status, tells_which_node_has_other_settings)
{
    char policy[2][PROCESS_PATH_BYTES];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < 2; i++) {
        snprintf(policy[i], sizeof policy[i], "%.150s/policy%zu.json", fixture.folder, i);
        file_write(policy[i], "{\"version\":1,\"routes\":[{\"path\":\"/v1/patients\",\"write\":\"patients:write\"}]}");
    }
    fixture_add_node(&fixture, (const char *const[]){"--policy-file", policy[0], "--keys-max", "7", NULL});
    fixture_add_node(&fixture, (const char *const[]){"--policy-file", policy[1], "--keys-max", "8", "--public-origin",
                                                     "https://elsewhere.example", NULL});
    losses_await_status(&fixture, " differs from the others in keys-max, public-origin: ");
    file_write(policy[1], "{\"version\":1,\"routes\":[{\"path\":\"/v1/beds\",\"write\":\"org:manage\"}]}");
    process_signal(&fixture.nodes[1].process, SIGHUP);
    losses_await_status(&fixture, " differs from the others in keys-max, public-origin, policy: ");
    fixture_stop(&fixture);
}

Test(cli_status, a_clock_that_is_off_is_told)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct clock_file clock;
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    fixture_add_node_with_clock(&fixture, &clock, -3600, NULL);
    losses_expect_told(&fixture, LOSS_CLOCK, "chatelaine_clock_wrong");
    clock_file_set(&clock, 0);
    while (fixture_metric(&fixture, 0, "chatelaine_clock_wrong") != 0 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_clock_wrong"), 0);
    losses_await_end(&fixture, LOSSES[LOSS_CLOCK].sentence);
    fixture_stop(&fixture);
    clock_file_remove(&clock);
}

/* The public listener says the same, and nothing else. Asked last, it may know better for a moment. */
static int readyz(const struct fixture *fixture)
{
    struct http_answer answer, public;
    int status = http_call(fixture->nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, &answer);

    fixture_call(fixture, 0, &(struct http_call){.target = "/readyz"}, &public);
    cr_expect_str_eq(public.body, "");
    return public.status == status ? status : 0;
}

static void set_rights(const struct fixture *fixture, const char *right)
{
    redis_server_tell(&fixture->redis, "ACL", "SETUSER", "default", right, NULL);
}

/* A node that can revoke is ready; one that may run no script is not, until it may. */
Test(cli_status, rights_that_redis_took_are_told)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_key key, other;
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    fixture_add_node(&fixture, NO_CANARY);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    set_rights(&fixture, "-hincrby");
    cr_expect_neq(fixture_try_create_key(&fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other), 201);
    cr_expect_eq(readyz(&fixture), 200);
    losses_await_status(&fixture, LOSSES[LOSS_RIGHTS].sentence);
    set_rights(&fixture, "-evalsha");
    while (readyz(&fixture) != 503 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(readyz(&fixture), 503);
    set_rights(&fixture, "+@all");
    while (readyz(&fixture) != 200 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(readyz(&fixture), 200);
    cr_expect_gt(fixture_metric(&fixture, 0, "chatelaine_redis_denied_total"), 0);
    fixture_create_key(&fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &other);
    fixture_stop(&fixture);
}

/* A backlog is Redis', so each node that writes a log sees it. */
Test(cli_status, audit_events_that_no_log_will_have_are_told)
{
    char path[PROCESS_PATH_BYTES];
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    snprintf(path, sizeof path, "%.150s/audit.log", fixture.folder);
    fixture_add_node(&fixture, (const char *const[]){"--audit-log", path, NULL});
    fixture.wrote_names = true;
    redis_server_tell(&fixture.redis, "SET", fixture_name(NULL, "log_dropped"), "1", NULL);
    losses_expect_told(&fixture, LOSS_AUDIT_DROPPED, "chatelaine_audit_dropped");
    redis_server_tell(&fixture.redis, "DEL", fixture_name(NULL, "log_dropped"), NULL);
    losses_await_end(&fixture, LOSSES[LOSS_AUDIT_DROPPED].sentence);
    fixture_stop(&fixture);
}
