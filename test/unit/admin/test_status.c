#include "admin/status_internal.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(status, .fini = leak_guard);

static struct settings settings;
static struct status status;
static struct status_node nodes[3];

#define REPORT(lease, more)                                                                                           \
    "{\"host\":\"north\",\"address\":\"10.0.0.1:8080\",\"version\":\"0.2.0\",\"pid\":7,\"started_ms\":1700000000000," \
    "\"membership\":\"00112233445566778899aabbccddeeff\",\"lease_ms\":1000,\"has_lease\":" lease                      \
    ",\"lease_since_ms\":1700000001000,\"revocations\":3,\"barrier_p99_us\":2500,\"master_key\":\"aabbccdd\","        \
    "\"has_revocation_log\":true,\"is_draining\":false,\"degraded\":[" more "]}"

static void read_report(struct status_node *node, const char *report, int64_t age_ms)
{
    status_read_node(&(struct node_row){TEXT("north 10.0.0.1:8080"), text_of(report), age_ms}, node);
}

/* A deployment in which all is well. */
static void make_well(void)
{
    status = (struct status){.settings = &settings, .is_reachable = true, .trouble = "", .is_listed = true};
    status.facts = (struct store_facts){.redis_version = "7.0.15",
                                        .appendonly = true,
                                        .appendfsync_always = true,
                                        .no_fsync_on_rewrite_off = true,
                                        .noeviction = true,
                                        .writable = true,
                                        .schema = 1,
                                        .config_readable = true};
    read_report(&nodes[0], REPORT("true", ""), 4000);
    read_report(&nodes[1], REPORT("true", ""), 9000);
    snprintf(nodes[1].name, sizeof nodes[1].name, "south 10.0.0.2:8080");
    status.nodes = nodes;
    status.node_count = 2;
}

static void expect_problem(const char *says)
{
    status_judge(&status);
    for (size_t i = 0; i < status.problem_count; i++)
        if (strstr(status.problems[i], says))
            return;
    cr_assert_fail("none of %zu problems says: %s (%s)", status.problem_count, says, status.problems[0]);
}

Test(status, is_well_if_nothing_is_wrong)
{
    make_well();
    status_judge(&status);
    cr_expect_eq(status.problem_count, 0, "%s", status.problems[0]);
    cr_expect_eq(nodes[0].lease_ms, 1000);
    cr_expect_str_eq(nodes[0].version, "0.2.0");
    cr_expect_eq(nodes[0].barrier_p99_us, 2500);
}

static void expect_printed(const char *text);

/* A node tells its clock once it knows Redis', and those of 0.3.0 tell none. */
Test(status, a_clock_that_no_report_tells_is_unknown)
{
    make_well();
    expect_printed("\"clock_ahead_ms\":null,\"certificates\":[],");
    read_report(&nodes[0], "{\"clock_ahead_ms\":-7}", 1);
    expect_printed("\"clock_ahead_ms\":-7,");
}

Test(status, names_what_is_degraded)
{
    make_well();
    status.is_reachable = false;
    status.trouble = "Redis cannot be reached: gone.";
    expect_problem("Redis cannot be reached: gone.");
    make_well();
    status.facts.appendfsync_always = false;
    expect_problem("Redis, appendfsync: ");
    make_well();
    status.facts.full = true;
    expect_problem("Redis, memory: ");
    make_well();
    status.facts.missing_endings = 1;
    expect_problem("Redis, missing-endings: ");
    make_well();
    status.facts.lost_changes = 1;
    expect_problem("Redis, lost-changes: ");
    make_well();
    status.facts.listeners_without_store = 1;
    expect_problem("Redis, lost-store: ");
    make_well();
    status.facts.time_ahead_ms = STORE_TIME_APART_MS + 1;
    expect_problem("Redis, store-time: its clock is behind");
    make_well();
    status.facts.time_ahead_ms = -STORE_TIME_APART_MS - 1;
    expect_problem("Redis, store-time: its clock is ahead");
    make_well();
    status.facts.earlier_members = 1;
    expect_problem("Redis, earlier-members: ");
    make_well();
    status.node_count = 0;
    expect_problem("No node reports");
    make_well();
    nodes[1].age_ms = STATUS_SILENT_MS + 1;
    expect_problem("south 10.0.0.2:8080: silent for 35 s");
    make_well();
    read_report(&nodes[0], REPORT("false", "\"No lease: checks read Redis.\""), 1);
    expect_problem("north 10.0.0.1:8080: No lease");
    make_well();
    snprintf(nodes[1].master_key, sizeof nodes[1].master_key, "11223344");
    expect_problem("finish the rotation");
    make_well();
    nodes[1].has_revocation_log = false;
    expect_problem("south 10.0.0.2:8080 writes no revocation log");
}

/* Nobody asked for what this user may not read, so nothing is said of it. */
Test(status, what_cannot_be_seen_is_unknown_and_no_problem)
{
    make_well();
    status.facts.config_readable = status.facts.appendfsync_always = status.facts.no_fsync_on_rewrite_off = false;
    status.facts.sentinels = 3;
    status.trouble = fitness_rule("config-get")->remedy;
    expect_problem("Redis, config-get: ");
    cr_expect_eq(status.problem_count, 1, "%s", status.problems[1]);
    expect_printed("\n  unknown without +config|get: appendfsync, no-appendfsync-on-rewrite, min-replicas-to-write, "
                   "min-replicas-max-lag\n");
    status.facts.appendonly = false;
    expect_problem("Redis, appendonly: ");
    cr_expect_eq(status.problem_count, 2, "INFO shows that one");
    make_well();
    status.facts.appendfsync_always = false;
    expect_problem("Redis, appendfsync: ");
    status.is_reachable = status.is_listed = false;
    expect_printed("\"schema\":null,\"replicas\":null,\"durability_asserted\":null,");
    expect_printed("\"longest_lease_ms\":null,\"missing_endings\":null,\"lost_changes\":null,");
}

/* Its last report may be untrue by now. */
Test(status, of_a_silent_node_nothing_is_asserted)
{
    struct buf out;

    make_well();
    read_report(&nodes[0], REPORT("true", "\"No lease: checks read Redis.\""), STATUS_SILENT_MS + 1);
    expect_problem("silent for 35 s, so its state is unknown: it was killed or paused, or Redis takes no reports from");
    cr_expect_eq(status.problem_count, 1, "%s", status.problems[1]);
    expect_printed("  north 10.0.0.1:8080\n    state unknown, last heard 35 s ago: version 0.2.0, pid 7, membership "
                   "00112233445566778899aabbccddeeff\n");
    expect_printed("\nRevocation log: written by 1 of 1 nodes\n");
    expect_printed("\"pid\":7,\"started_at\":\"2023-11-14T22:13:20.000Z\",\"heard_ms_ago\":35001,\"silent\":true,"
                   "\"draining\":null,\"lease\":\"unknown\",\"lease_since\":null,\"lease_ms\":null,"
                   "\"membership\":\"00112233445566778899aabbccddeeff\",");
    expect_printed("\"revocations\":null,\"barrier_p99_us\":null,\"master_key\":null,\"revocation_log\":null,"
                   "\"clock_ahead_ms\":null,\"certificates\":null,\"differs_in\":null}");
    status.node_count = 1;
    buf_init(&out, 1 << 16);
    status_print(&status, &out);
    buf_append_char(&out, '\0');
    cr_expect_null(strstr(out.ptr, "lease held"), "%s", out.ptr);
    cr_expect_null(strstr(out.ptr, "revocations, p99"), "%s", out.ptr);
    cr_expect_null(strstr(out.ptr, "Revocation log"), "%s", out.ptr);
    buf_finish(&out);
}

enum { DAY_S = 24 * 60 * 60 };
#define NOW_S INT64_C(1700000000)

/* Of a single node that reports this. */
static void expect_of_certificate(int64_t left_s, bool has_rejected, int64_t age_ms, const char *problem)
{
    char report[512];

    make_well();
    status.now_ms = NOW_S * 1000;
    status.node_count = 1;
    snprintf(report, sizeof report,
             "{\"certificates\":[1,{\"listener\":\"internal\",\"files\":\"/etc/a.pem\",\"not_after_s\":%lld,"
             "\"has_rejected\":%s}]}",
             (long long)(NOW_S + left_s), has_rejected ? "true" : "false");
    read_report(&nodes[0], report, age_ms);
    status_judge(&status);
    if (!problem)
        cr_expect_eq(status.problem_count, 0, "%lld: %s", (long long)left_s, status.problems[0]);
    else
        expect_problem(problem);
}

/* What a silent node's certificate is now, nobody knows. */
Test(status, tells_certificates_that_end)
{
    const int64_t edge_s = (int64_t)14 * DAY_S;

    expect_of_certificate(edge_s, false, 1, NULL);
    expect_of_certificate(edge_s - 1, false, 1,
                          "north 10.0.0.1:8080: the certificate of its internal listener (/etc/a.pem) expires in 13 d");
    expect_of_certificate(90, false, 1, "expires in 90 s: renew it.");
    expect_of_certificate(-3 * DAY_S, false, 1,
                          "the certificate of its internal listener (/etc/a.pem) expired 3 d ago, and clients refuse");
    expect_of_certificate(2 * edge_s, true, 1,
                          "changed certificates of its internal listener (/etc/a.pem) cannot be used, and the old");
    expect_of_certificate(-DAY_S, true, STATUS_SILENT_MS + 1, "silent for");
    cr_expect_eq(status.problem_count, 1, "%s", status.problems[1]);
}

Test(status, tells_which_partitions_are_away)
{
    struct buf out;

    make_well();
    status.partitions = 16;
    status.partitions_well = 15;
    status.trouble = "Partition 3: Redis cannot be reached.";
    expect_problem("Redis: Partition 3: ");
    buf_init(&out, 1 << 16);
    status_print(&status, &out);
    status_print_json(&status, &out);
    buf_append_char(&out, '\0');
    cr_expect(strstr(out.ptr, "partitions: 15 of 16 can be reached and are fit"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "\"partitions\":16,\"partitions_fit\":15"), "%s", out.ptr);
    buf_finish(&out);
}

Test(status, tells_how_far_the_store_s_time_is_from_redis_clock)
{
    static const struct {
        int64_t ahead_ms;
        const char *says;
    } CASES[] = {{STORE_TIME_APART_MS, "revocations: Redis' clock"},
                 {-STORE_TIME_APART_MS, "revocations: Redis' clock"},
                 {7249, "revocations: 7.2 s ahead of Redis' clock"},
                 {-7200000, "revocations: 7200.0 s behind Redis' clock"}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct buf out;

        make_well();
        status.facts.time_ahead_ms = CASES[i].ahead_ms;
        buf_init(&out, 1 << 16);
        status_print(&status, &out);
        buf_append_char(&out, '\0');
        cr_expect(strstr(out.ptr, CASES[i].says), "no '%s' in %s", CASES[i].says, out.ptr);
        buf_finish(&out);
    }
}

/* Whoever writes to Redis may write anything there. */
/* Nodes with these numbers for two settings; NULL: one of an earlier version, which says nothing. */
static void make_three(const char *const said[3])
{
    char report[2048];

    make_well();
    status.node_count = 3;
    for (size_t i = 0; i < 3; i++) {
        snprintf(report, sizeof report, REPORT("true", ""));
        if (said[i])
            snprintf(strrchr(report, '}'), 200, ",\"settings\":{%s}}", said[i]);
        read_report(&nodes[i], report, 4000);
        snprintf(nodes[i].name, sizeof nodes[i].name, "vm%zu", i + 1);
    }
}

Test(status, tells_who_differs_in_what)
{
    static const struct {
        const char *said[3], *problem;
    } CASES[] = {
        {{"\"a\":1,\"b\":2", "\"a\":1,\"b\":2", "\"a\":1,\"b\":2"}, NULL},
        {{"\"a\":1,\"b\":2", "\"a\":7,\"b\":8", "\"a\":1,\"b\":2"}, "vm2 differs from the others in a, b: "},
        {{"\"a\":7,\"b\":2", "\"a\":1,\"b\":2", "\"a\":1,\"b\":2"}, "vm1 differs from the others in a: "},
        {{"\"a\":1,\"b\":2", "\"a\":1,\"b\":8", NULL}, "vm2 differs from the others in b: "},
        {{NULL, "\"a\":1", "\"a\":1,\"b\":2"}, NULL},
        {{NULL, NULL, NULL}, NULL},
        {{"\"a\":1", "\"a\":\"x\",\"b\":[]", "\"b\":{}"}, NULL},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_three(CASES[i].said);
        status_judge(&status);
        cr_expect_eq(status.problem_count, CASES[i].problem != NULL, "row %zu: %s", i, status.problems[0]);
        cr_expect(!CASES[i].problem || strstr(status.problems[0], CASES[i].problem) == status.problems[0],
                  "row %zu: %s", i, status.problems[0]);
    }
    make_three(CASES[1].said);
    nodes[1].age_ms = STATUS_SILENT_MS + 1;
    status_judge(&status);
    for (size_t i = 0; i < status.problem_count; i++)
        cr_expect_null(strstr(status.problems[i], "differs"), "%s", status.problems[i]);
}

Test(status, survives_any_report)
{
    static const char *const REPORTS[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\x1b[2J",
        "{\"host\":7,\"degraded\":\"no\",\"lease_ms\":\"x\",\"has_lease\":1}",
        "{\"degraded\":[1,null,{},\"a\\u001bb\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]}",
        "{\"pid\":1e300,\"started_ms\":-9007199254740991,\"barrier_p99_us\":0.5}"};
    struct buf out;

    for (size_t i = 0; i < COUNT(REPORTS); i++) {
        make_well();
        read_report(&nodes[0], REPORTS[i], 1);
        status_judge(&status);
        buf_init(&out, 1 << 20);
        status.now_ms = 1700000002000;
        status_print(&status, &out);
        status_print_json(&status, &out);
        cr_expect_not(out.failed);
        cr_expect_not(memchr(out.ptr, '\x1b', out.len), "%s", REPORTS[i]);
        buf_finish(&out);
    }
    make_well();
    read_report(&nodes[0], "{", 1);
    expect_problem("north 10.0.0.1:8080: its report cannot be read.");
}

Test(status, long_texts_are_cut)
{
    char *report = malloc(4000);

    memset(report, 'x', 4000);
    memcpy(report, "{\"host\":\"", 9);
    memcpy(report + 3997, "\"}", 3);
    read_report(&nodes[0], report, 1);
    cr_expect(nodes[0].is_readable);
    cr_expect_lt(strlen(nodes[0].host), sizeof nodes[0].host);
    free(report);
}

#define OTHER_MEMBERSHIP "ffeeddccbbaa99887766554433221100"

Test(status, memberships_of_all_partitions_are_named)
{
    struct buf out;

    make_well();
    snprintf(nodes[0].memberships + strlen(nodes[0].memberships), sizeof OTHER_MEMBERSHIP + 1, " " OTHER_MEMBERSHIP);
    buf_init(&out, 1 << 20);
    status.now_ms = 1700000120000;
    status_print(&status, &out);
    status_print_json(&status, &out);
    buf_append_char(&out, '\0');
    cr_expect(strstr(out.ptr, ", 2 memberships (see --json)\n"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "\"membership\":\"00112233445566778899aabbccddeeff\",\"memberships\":"
                              "[\"00112233445566778899aabbccddeeff\",\"" OTHER_MEMBERSHIP "\"]"),
              "%s", out.ptr);
    buf_finish(&out);
}

Test(status, is_printed)
{
    struct buf out;

    make_well();
    nodes[1].barrier_p99_us = -1;
    status.unnamed = 2;
    status.facts.durability_asserted = true;
    snprintf(status.target, sizeof status.target, "redis://127.0.0.1:6379");
    status_judge(&status);
    buf_init(&out, 1 << 20);
    status.now_ms = 1700000120000;
    status_print(&status, &out);
    buf_append_char(&out, '\0');
    cr_expect(strstr(out.ptr, "  north 10.0.0.1:8080\n    version 0.2.0, pid 7, up 2 min, heard 4 s ago\n"), "%s",
              out.ptr);
    cr_expect(strstr(out.ptr, "    lease held since 2023-11-14T22:13:21Z, membership 00112233"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "    3 revocations, p99 within 2.5 ms\n"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "    3 revocations, p99 above 10 s\n"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "  2 memberships of nodes that do not report"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "\nRevocation log: written by 2 of 2 nodes\n"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "\n  durability: asserted by the operator"), "%s", out.ptr);
    cr_expect(strstr(out.ptr, "\nAll is well.\n"), "%s", out.ptr);
    buf_finish(&out);
}

/* The canary */

static const struct canary_state FINE = {.interval_ms = 60000,
                                         .finished = 7,
                                         .since_finished_ms = 20000,
                                         .finished_by = {"north", 5},
                                         .took_us = 1500,
                                         .refused = 2,
                                         .slowest = {"south", 5},
                                         .slowest_ms = 48,
                                         .since_unfinished_ms = -1,
                                         .since_violation_ms = -1};

/* As two nodes that have run it for an hour report. */
static void make_well_with_canary(const struct canary_state *first, const struct canary_state *second)
{
    make_well();
    nodes[0].canary_ms = nodes[1].canary_ms = 60000;
    status.now_ms = 1700003600000;
    status.has_canary = true;
    canary_summary_add(&status.canary, first);
    canary_summary_add(&status.canary, second);
}

static void expect_printed(const char *says)
{
    struct buf out;

    status_judge(&status);
    buf_init(&out, 1 << 20);
    status_print(&status, &out);
    status_print_json(&status, &out);
    buf_append_char(&out, '\0');
    cr_expect(strstr(out.ptr, says), "no %s in %s", says, out.ptr);
    buf_finish(&out);
}

Test(status, canary_of_all_partitions)
{
    struct canary_state other = FINE;

    other.since_finished_ms = 50000;
    other.finished_by = TEXT("so\x1buth");
    other.took_us = 400;
    other.silent = 1;
    other.unfinished = 2;
    other.since_unfinished_ms = 90000;
    other.unfinished_why = TEXT("Redis has lost its key");
    make_well_with_canary(&FINE, &other);
    status_judge(&status);
    cr_expect_eq(status.problem_count, 0, "%s", status.problems[0]);
    expect_printed(
        "\nCanary: last run 50 s ago by so\xef\xbf\xbduth\n"
        "  revocation answered after 1.5 ms, asked 3 nodes: 2 refused, 1 did not answer, the last within 48 ms "
        "(south)\n  14 runs, 2 unfinished, 0 violations\n");
    expect_printed("\"canary\":{\"interval_ms\":60000,\"runs\":14,\"last_run_ms_ago\":50000,");
    expect_printed("\"unfinished_runs\":2,\"unfinished_because\":\"Redis has lost its key\",\"violations\":0,"
                   "\"last_violation_ms_ago\":null,\"last_violation_by\":null}");
}

Test(status, canary_that_was_violated)
{
    struct canary_state violated = FINE;

    violated.accepted = 1;
    violated.violations = 3;
    violated.since_violation_ms = 30000;
    violated.violated_by = TEXT("south 10.0.0.2:8080");
    make_well_with_canary(&FINE, &violated);
    expect_problem("Canary: south 10.0.0.2:8080 accepted a key 30 s ago, after its revocation was answered.");
    expect_printed("2 refused, 1 ACCEPTED, ");
    expect_printed(" 3 violations\n");
    violated.since_violation_ms = 2 * 24 * 60 * 60 * 1000;
    make_well_with_canary(&violated, &FINE);
    status_judge(&status);
    cr_expect_eq(status.problem_count, 0, "long ago: %s", status.problems[0]);
}

Test(status, canary_that_does_not_run)
{
    struct canary_state late = FINE;

    late.since_finished_ms = 301000;
    late.since_unfinished_ms = 1000;
    late.unfinished_why = TEXT("no node could use its key");
    make_well_with_canary(&late, &FINE);
    expect_problem(
        "Canary: no run was finished for 301 s; the last one was given up because no node could use its key");
    late.since_unfinished_ms = 302000;
    make_well_with_canary(&late, &FINE);
    expect_problem("Canary: no run was finished for 301 s: the promise is not measured.");
    make_well_with_canary(&FINE, NULL);
    expect_problem("Canary: no run was finished for 300 s: ");
    expect_printed("\nCanary: no run was finished yet\n");
    status.now_ms = 1700000200000;
    status_judge(&status);
    cr_expect_eq(status.problem_count, 0, "there was no time yet: %s", status.problems[0]);
    nodes[0].canary_ms = nodes[1].canary_ms = 0;
    status.now_ms = 1700003600000;
    status_judge(&status);
    cr_expect_eq(status.problem_count, 0, "it is off: %s", status.problems[0]);
    expect_printed("\nCanary: off\n");
}
