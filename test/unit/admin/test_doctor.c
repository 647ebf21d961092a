#include "admin/doctor_internal.h"

#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(doctor, .fini = leak_guard);

static struct settings settings;
static struct doctor_evidence evidence;
static struct doctor_report report;

/* A deployment without any findings. */
static void make_fit(void)
{
    settings = (struct settings){.public_origin = "https://console.example.org",
                                 .min_replicas = 1,
                                 .limits.connections_max = 1000,
                                 .listen = "127.0.0.1:8080",
                                 .internal_listen = "unix:/run/chatelaine/check.sock",
                                 .audit_log = "/var/log/chatelaine/audit.log",
                                 .revocation_log = "/var/log/chatelaine/revocations"};
    evidence = (struct doctor_evidence){
        .settings = &settings,
        .is_reachable = true,
        .trouble = "",
        .facts = {.redis_version = "7.0.15",
                  .server = "Redis 7.0.15",
                  .appendonly = true,
                  .appendfsync_always = true,
                  .replay = STORE_REPLAY_WHOLE,
                  .no_fsync_on_rewrite_off = true,
                  .noeviction = true,
                  .writable = true,
                  .save_off = true,
                  .idle_timeout_off = true,
                  .replicas = 1,
                  .schema = 1,
                  .id = "00112233445566778899aabbccddeeff",
                  .config_readable = true},
        .file_limit = 100000,
    };
}

static const struct doctor_check *check_named(const char *name)
{
    for (size_t i = 0; i < report.count; i++)
        if (strcmp(report.checks[i].name, name) == 0)
            return &report.checks[i];
    test_give_up("no check is named %s", name);
}

/* Such a deployment behind three Sentinels. */
static void make_fit_with_sentinels(void)
{
    make_fit();
    evidence.facts.replicas_to_write = 1;
    evidence.facts.replica_lag_s = 2;
    evidence.facts.sentinels = evidence.facts.sentinels_knowing = evidence.facts.sentinels_agreeing = 3;
    evidence.facts.sentinel_quorum = 2;
    evidence.facts.sentinels_known = 3;
}

Test(doctor, tells_what_is_asserted_from_what_is_seen)
{
    make_fit();
    evidence.facts.durability_asserted = true;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("redis-durability")->status, DOCTOR_OK);
    cr_expect_str_eq(check_named("appendfsync")->detail, "always");
    evidence.facts.config_readable = false;
    evidence.facts.appendonly = evidence.facts.appendfsync_always = evidence.facts.no_fsync_on_rewrite_off = false;
    doctor_evaluate(&evidence, &report);
    cr_expect(doctor_is_fit(&report));
    cr_expect_eq(check_named("redis-durability")->status, DOCTOR_WARN);
    cr_expect_str_eq(check_named("redis-durability")->detail, "asserted; INFO shows no append-only file");
    cr_expect_str_eq(check_named("appendfsync")->detail, "not visible, asserted");
    cr_expect_str_eq(check_named("maxmemory-policy")->detail, "noeviction");
    evidence.facts.noeviction = false;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("maxmemory-policy")->status, DOCTOR_FAIL);
    for (size_t i = 0; i < report.count; i++)
        cr_expect_str_neq(report.checks[i].name, "stop-writes-on-bgsave-error", "nobody can know");
}

Test(doctor, tells_how_redis_is_reached)
{
    enum { NOW_S = 1767225600, DAY = 24 * 60 * 60 };
    static const struct {
        bool has_tls, is_elsewhere;
        int64_t not_after_s;
        enum doctor_status status;
        const char *detail;
    } CASES[] = {
        {false, false, 0, DOCTOR_OK, "no TLS, on this machine"},
        {false, true, 0, DOCTOR_WARN, "no TLS"},
        {true, true, 0, DOCTOR_OK, "TLS, with a verified certificate"},
        {true, false, NOW_S + 15 * DAY, DOCTOR_OK, "TLS, with a verified certificate"},
        {true, true, NOW_S + 13 * DAY + 1, DOCTOR_WARN, "TLS; --redis-cert expires in 13 days"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit();
        evidence.has_tls = CASES[i].has_tls;
        evidence.is_elsewhere = CASES[i].is_elsewhere;
        evidence.certificate_not_after_s = CASES[i].not_after_s;
        evidence.now_s = NOW_S;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("redis-tls")->status, CASES[i].status, "case %zu", i);
        cr_expect_str_eq(check_named("redis-tls")->detail, CASES[i].detail, "case %zu", i);
    }
}

Test(doctor, names_the_server_and_the_sentinel_that_does_not_answer)
{
    make_fit_with_sentinels();
    snprintf(evidence.facts.server, sizeof evidence.facts.server, "Valkey 8.1.1");
    evidence.facts.sentinels_knowing = evidence.facts.sentinels_agreeing = 2;
    snprintf(evidence.facts.sentinel_trouble, sizeof evidence.facts.sentinel_trouble, "Sentinel a:1: WRONGPASS");
    doctor_evaluate(&evidence, &report);
    cr_expect_str_eq(check_named("redis-version")->detail, "Valkey 8.1.1");
    cr_expect(strstr(check_named("sentinels")->detail, "; Sentinel a:1: WRONGPASS"));
}

Test(doctor, checks_what_failovers_need)
{
    static const struct {
        const char *check;
        size_t fact; /* of struct store_facts; 0: --min-replicas */
        int64_t value;
        enum doctor_status status;
    } CASES[] = {
        {"min-replicas-to-write", offsetof(struct store_facts, replicas_to_write), 0, DOCTOR_FAIL},
        {"min-replicas-to-write", offsetof(struct store_facts, replicas_to_write), 2, DOCTOR_OK},
        {"min-replicas-max-lag", offsetof(struct store_facts, replica_lag_s), 0, DOCTOR_FAIL},
        {"min-replicas-max-lag", offsetof(struct store_facts, replica_lag_s), 3, DOCTOR_FAIL},
        {"min-replicas-max-lag", offsetof(struct store_facts, replica_lag_s), 1, DOCTOR_OK},
        {"sentinels", offsetof(struct store_facts, sentinels_knowing), 2, DOCTOR_WARN},
        {"sentinels", offsetof(struct store_facts, sentinels_agreeing), 2, DOCTOR_FAIL},
        {"sentinels", offsetof(struct store_facts, sentinels_known), 1, DOCTOR_FAIL},
        {"sentinels", offsetof(struct store_facts, sentinels_known), 2, DOCTOR_WARN},
        {"sentinels", offsetof(struct store_facts, sentinels_known), 4, DOCTOR_WARN},
        {"sentinels", offsetof(struct store_facts, sentinel_quorum), 1, DOCTOR_WARN},
        {"replicas", offsetof(struct store_facts, replicas), 2, DOCTOR_WARN},
        {"replicas", offsetof(struct store_facts, replicas), 0, DOCTOR_FAIL},
        {"replicas", 0, 0, DOCTOR_FAIL},
    };

    make_fit_with_sentinels();
    doctor_evaluate(&evidence, &report);
    for (size_t i = 0; i < report.count; i++)
        cr_expect_eq(report.checks[i].status, DOCTOR_OK, "%s", report.checks[i].name);
    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit_with_sentinels();
        if (CASES[i].fact)
            *(int64_t *)((char *)&evidence.facts + CASES[i].fact) = CASES[i].value;
        else
            settings.min_replicas = CASES[i].value;
        if (CASES[i].fact == offsetof(struct store_facts, sentinels_knowing))
            evidence.facts.sentinels_agreeing = CASES[i].value;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named(CASES[i].check)->status, CASES[i].status, "case %zu", i);
        cr_expect_eq(check_named(CASES[i].check)->remedy != NULL, CASES[i].status != DOCTOR_OK, "case %zu", i);
        cr_expect_eq(check_named("schema")->status, DOCTOR_OK, "case %zu", i);
    }
}

Test(doctor, tells_an_empty_store_and_a_name_of_several_servers)
{
    static const struct {
        unsigned v4, v6;
        enum doctor_status status;
    } CASES[] = {{0, 0, DOCTOR_OK},   {1, 0, DOCTOR_OK},   {0, 1, DOCTOR_OK},  {1, 1, DOCTOR_WARN},
                 {2, 0, DOCTOR_FAIL}, {0, 3, DOCTOR_FAIL}, {2, 1, DOCTOR_FAIL}};

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit();
        evidence.addresses_v4 = CASES[i].v4;
        evidence.addresses_v6 = CASES[i].v6;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("address")->status, CASES[i].status, "case %zu", i);
        cr_expect_eq(check_named("store")->status, DOCTOR_OK);
    }
    make_fit();
    evidence.facts.id[0] = '\0';
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("store")->status, DOCTOR_WARN);
    cr_expect(doctor_is_fit(&report), "the first account comes after");
}

/* Half of the replicas, rounded up: a new master and a replaced one cannot both have that many. */
Test(doctor, knows_how_many_replicas_fence)
{
    for (int64_t replicas = 1; replicas <= 5; replicas++) {
        static const int64_t FENCING[] = {0, 1, 1, 2, 2, 3};

        make_fit_with_sentinels();
        evidence.facts.replicas = replicas;
        evidence.facts.replicas_to_write = FENCING[replicas];
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("min-replicas-to-write")->status, DOCTOR_OK, "%d", (int)replicas);
        evidence.facts.replicas_to_write--;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("min-replicas-to-write")->status, DOCTOR_FAIL, "%d", (int)replicas);
    }
}

Test(doctor, tells_how_sure_leases_end_with_their_master)
{
    static const struct {
        int64_t known, usual, min_replicas, timeout_ms;
        enum doctor_status status;
        const char *text;
    } CASES[] = {
        {1, 1, 1, 60000, DOCTOR_OK, "every replica"},
        {2, 2, 2, 1000, DOCTOR_OK, "every replica must acknowledge each lease: --min-replicas 2 of 2"},
        {2, 2, 1, 1000, DOCTOR_OK, "at least half of the replicas"},
        {2, 2, 1, 1001, DOCTOR_FAIL, "--redis-timeout-ms 1001"},
        {3, 3, 2, 1000, DOCTOR_OK, "at least half of the replicas"},
        {3, 3, 1, 1000, DOCTOR_FAIL,
         "fewer than half of the replicas must acknowledge each lease: --min-replicas 1 of 3"},
        {5, 5, 2, 1000, DOCTOR_FAIL, "fewer than half"},
        {3, 2, 1, 1000, DOCTOR_WARN, "fewer than half"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit_with_sentinels();
        evidence.facts.replicas_known = CASES[i].known;
        evidence.facts.replicas_usual = CASES[i].usual;
        evidence.facts.min_replicas = settings.min_replicas = CASES[i].min_replicas;
        settings.redis_timeout_ms = CASES[i].timeout_ms;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("leases")->status, CASES[i].status, "case %zu", i);
        cr_expect_not_null(strstr(check_named("leases")->detail, CASES[i].text), "%s", check_named("leases")->detail);
    }
}

/* A value that cannot be read is not reported as 0. */
Test(doctor, does_not_know_settings_that_it_may_not_read)
{
    static const char *const CHECKS[] = {"appendonly", "min-replicas-to-write", "min-replicas-max-lag"};

    make_fit_with_sentinels();
    evidence.facts.config_readable = false;
    evidence.facts.replicas_to_write = evidence.facts.replica_lag_s = 0;
    doctor_evaluate(&evidence, &report);
    for (size_t i = 0; i < COUNT(CHECKS); i++) {
        cr_expect_eq(check_named(CHECKS[i])->status, DOCTOR_FAIL, "%s", CHECKS[i]);
        cr_expect_not_null(strstr(check_named(CHECKS[i])->detail, "unknown"), "%s", CHECKS[i]);
        cr_expect_not_null(strstr(check_named(CHECKS[i])->remedy, "config|get"), "%s", CHECKS[i]);
    }
}

Test(doctor, finds_nothing_in_a_fit_deployment)
{
    make_fit();
    doctor_evaluate(&evidence, &report);
    cr_assert(doctor_is_fit(&report));
    cr_assert_geq(report.count, 13);
    for (size_t i = 0; i < report.count; i++) {
        cr_expect_eq(report.checks[i].status, DOCTOR_OK, "%s", report.checks[i].name);
        cr_expect_null(report.checks[i].remedy, "%s", report.checks[i].name);
    }
}

static void old_redis(void)
{
    snprintf(evidence.facts.redis_version, sizeof evidence.facts.redis_version, "6.2.14");
}
static void no_aof(void)
{
    evidence.facts.appendonly = false;
}
static void nobody_may_ask_who_reads_the_aof(void)
{
    evidence.facts.replay = STORE_REPLAY_UNKNOWN;
}
static void aof_is_not_replayed(void)
{
    evidence.facts.replay = STORE_REPLAY_DROPS;
}
static void fsync_everysec(void)
{
    evidence.facts.appendfsync_always = false;
}
static void fsync_off_on_rewrite(void)
{
    evidence.facts.no_fsync_on_rewrite_off = false;
}
static void evicts(void)
{
    evidence.facts.noeviction = false;
}
static void config_hidden(void)
{
    evidence.facts.config_readable = false;
}
static void read_only(void)
{
    evidence.facts.writable = false;
}
static void replica_missing(void)
{
    evidence.facts.replicas = 0;
}
static void alone(void)
{
    evidence.facts.replicas = 0;
    settings.min_replicas = 0;
}
static void replica_unused(void)
{
    settings.min_replicas = 0;
}
static void newer_schema(void)
{
    evidence.facts.schema = 99;
}
static void endings_missing(void)
{
    evidence.facts.missing_endings = 1;
}

static void changes_lost(void)
{
    evidence.facts.lost_changes = 1;
}

static void nodes_without_store(void)
{
    evidence.facts.listeners_without_store = 2;
}

static void nobody_may_ask_who_listens(void)
{
    evidence.facts.listeners_without_store = -1;
}

static void earlier_member(void)
{
    evidence.facts.earlier_members = 1;
}

static void clock_a_little_off(void)
{
    evidence.facts.clock_ahead_ms = -1500;
}
static void time_a_little_ahead(void)
{
    evidence.facts.time_ahead_ms = 1001;
}
static void time_far_behind(void)
{
    evidence.facts.time_ahead_ms = -60001;
}
static void full(void)
{
    evidence.facts.full = true;
}
static void quiet_links_are_closed(void)
{
    evidence.facts.idle_timeout_off = false;
}
static void snapshots(void)
{
    evidence.facts.save_off = false;
}
static void clock_far_off(void)
{
    evidence.facts.clock_ahead_ms = 16000;
}
static void no_key(void)
{
    evidence.key_trouble = "no master key";
}
static void old_certificate(void)
{
    evidence.tls = (struct doctor_tls){.is_on = true, .left_s = 14 * 86400 - 1};
}
static void bad_certificate(void)
{
    evidence.internal_tls = (struct doctor_tls){.is_on = true, .trouble = "no certificate"};
}
static void no_origin(void)
{
    settings.public_origin = NULL;
}
static void bad_origin(void)
{
    evidence.origin_trouble = "no origin";
}
static void plain_origin(void)
{
    settings.public_origin = "http://console.example.org";
}
static void few_files(void)
{
    evidence.file_limit = 1024;
}
static void unreachable(void)
{
    evidence.is_reachable = false;
    evidence.trouble = "connection refused";
}

Test(doctor, tells_every_mistake_in_the_settings)
{
    static const struct unknown_settings UNKNOWN = {
        .of = {{.name = "CHATELAINE_LEASE_MSS", .meant = "CHATELAINE_LEASE_MS", .where = "/etc/c.conf:7"},
               {.name = "CHATELAINE_X"}},
        .count = 2};
    static const char *const DETAILS[] = {
        "--device-clients is wrong", "--policy-file p: is wrong",
        "/etc/c.conf:7: CHATELAINE_LEASE_MSS is no setting and has no effect; did you mean CHATELAINE_LEASE_MS?",
        "CHATELAINE_X is no setting and has no effect."};

    make_fit();
    evidence.mistakes = TEXT("--device-clients is wrong\n--policy-file p: is wrong");
    settings.unknown = &UNKNOWN;
    doctor_evaluate(&evidence, &report);
    cr_expect_not(doctor_is_fit(&report));
    for (size_t i = 0; i < COUNT(DETAILS); i++) {
        cr_expect_str_eq(report.checks[i].name, "settings");
        cr_expect_eq(report.checks[i].status, DOCTOR_FAIL);
        cr_expect_str_eq(report.checks[i].detail, DETAILS[i]);
    }
    evidence.mistakes = TEXT("");
    settings.unknown = NULL;
    doctor_evaluate(&evidence, &report);
    cr_expect(doctor_is_fit(&report));
}

Test(doctor, tells_which_partitions_are_away)
{
    make_fit();
    evidence.partitions = 16;
    evidence.partitions_well = 16;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("partitions")->status, DOCTOR_OK);
    cr_expect(doctor_is_fit(&report));
    evidence.partitions_well = 15;
    evidence.trouble = "Partition 3: Redis cannot be reached.";
    doctor_evaluate(&evidence, &report);
    cr_expect_str_eq(check_named("partitions")->detail,
                     "15 of 16 can be reached and are fit; Partition 3: Redis cannot be reached.");
    cr_expect_not(doctor_is_fit(&report));
}

Test(doctor, judges_a_cluster)
{
    make_fit();
    evidence.facts.is_cluster = true;
    evidence.facts.node_timeout_ms = 15000;
    evidence.facts.replicas_known = 1;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("cluster")->status, DOCTOR_WARN);
    cr_expect_eq(check_named("cluster-require-full-coverage")->status, DOCTOR_WARN);
    cr_expect_eq(check_named("leases")->status, DOCTOR_OK);
    evidence.facts.full_coverage_off = true;
    evidence.facts.replicas_to_write = 1;
    evidence.facts.replica_lag_s = 2;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("cluster")->status, DOCTOR_OK);
    cr_expect_eq(check_named("cluster-require-full-coverage")->status, DOCTOR_OK);
    settings.min_replicas = 0;
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("replicas")->status, DOCTOR_FAIL);
}

Test(doctor, tells_events_that_no_log_takes)
{
    static const struct {
        struct audit_backlog backlog;
        enum doctor_status status;
        const char *says;
    } CASES[] = {
        {{0}, DOCTOR_OK, "no node writes one"},
        {{.has_logs = true}, DOCTOR_OK, "0 events wait"},
        {{.has_logs = true, .count = 3, .oldest_ms = 60000}, DOCTOR_OK, "3 events wait for one, the oldest for 60 s"},
        {{.has_logs = true, .count = 3, .oldest_ms = 301000}, DOCTOR_WARN, "the oldest for 301 s"},
        {{.count = 1, .oldest_ms = 301000}, DOCTOR_WARN, "1 events wait"},
        {{.has_logs = true, .dropped = 7}, DOCTOR_WARN, "7 were dropped"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit();
        evidence.has_backlog = true;
        evidence.backlog = CASES[i].backlog;
        doctor_evaluate(&evidence, &report);
        cr_expect_eq(check_named("audit-log")->status, CASES[i].status, "case %zu", i);
        cr_expect_not_null(strstr(check_named("audit-log")->detail, CASES[i].says), "case %zu: %s", i,
                           check_named("audit-log")->detail);
    }
}

Test(doctor, a_certificate_that_lasts_is_fine)
{
    make_fit();
    evidence.tls = (struct doctor_tls){.is_on = true, .left_s = 14 * 86400};
    doctor_evaluate(&evidence, &report);
    cr_expect_eq(check_named("tls")->status, DOCTOR_OK);
    cr_expect_str_eq(check_named("tls")->detail, "the first certificate to expire has 14 days left");
    cr_expect(doctor_is_fit(&report));
}

/* Each protection that a deployment lacks is told, as a warning: some have another one in its place. */
Test(doctor, tells_each_protection_that_is_off)
{
    static const struct {
        const char *check, *listen, *internal_listen, *client_ca;
        bool has_tls, has_internal_tls;
        enum doctor_status status;
        const char *says;
    } CASES[] = {
        {"tls", "127.0.0.1:8080", "[::1]:8081", NULL, false, false, DOCTOR_OK, "no TLS, on this machine"},
        {"tls", "localhost:8080", "localhost:8081", NULL, false, false, DOCTOR_OK, "no TLS, on this machine"},
        {"tls", "0.0.0.0:8080", "[::1]:8081", NULL, false, false, DOCTOR_WARN, "no TLS: 0.0.0.0:8080"},
        {"tls", "[::]:8080", "[::1]:8081", NULL, false, false, DOCTOR_WARN, "no TLS"},
        {"tls", "node1.example.org:8080", "[::1]:8081", NULL, false, false, DOCTOR_WARN, "no TLS"},
        {"tls", "0.0.0.0:8080", "[::1]:8081", NULL, true, false, DOCTOR_OK, "99 days left"},
        {"internal-tls", "127.0.0.1:8080", "unix:/run/check", NULL, false, false, DOCTOR_OK, "no TLS, on this machine"},
        {"internal-tls", "127.0.0.1:8080", "0.0.0.0:8081", NULL, false, false, DOCTOR_WARN, "no TLS: 0.0.0.0:8081"},
        {"internal-tls", "127.0.0.1:8080", "0.0.0.0:8081", NULL, false, true, DOCTOR_OK, "99 days left"},
        {"internal-client-ca", "127.0.0.1:8080", "[::1]:8081", NULL, false, false, DOCTOR_OK, "on this machine"},
        {"internal-client-ca", "127.0.0.1:8080", "10.0.0.1:8081", NULL, false, true, DOCTOR_WARN, "no client"},
        {"internal-client-ca", "127.0.0.1:8080", "10.0.0.1:8081", "ca", false, true, DOCTOR_OK, "must show"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit();
        settings.listen = CASES[i].listen;
        settings.internal_listen = CASES[i].internal_listen;
        settings.internal_client_ca = CASES[i].client_ca;
        evidence.tls = (struct doctor_tls){.is_on = CASES[i].has_tls, .left_s = 99 * 86400};
        evidence.internal_tls = (struct doctor_tls){.is_on = CASES[i].has_internal_tls, .left_s = 99 * 86400};
        doctor_evaluate(&evidence, &report);
        const struct doctor_check *check = check_named(CASES[i].check);
        cr_expect_eq(check->status, CASES[i].status, "case %zu: %s", i, check->detail);
        cr_expect_not_null(strstr(check->detail, CASES[i].says), "case %zu: %s", i, check->detail);
        cr_expect(doctor_is_fit(&report), "case %zu", i);
    }
}

static void no_audit_log(void)
{
    settings.audit_log = NULL;
}
static void no_audit_log_here(void)
{
    settings.audit_log = NULL;
    evidence.has_backlog = true;
    evidence.backlog.has_logs = true;
}
static void no_revocation_log(void)
{
    settings.revocation_log = NULL;
}

Test(doctor, finds_each_single_fault)
{
    static const struct {
        void (*break_it)(void);
        const char *check;
        enum doctor_status status;
    } CASES[] = {
        {old_redis, "redis-version", DOCTOR_FAIL},
        {no_aof, "appendonly", DOCTOR_FAIL},
        {nobody_may_ask_who_reads_the_aof, "append-only-file-user", DOCTOR_WARN},
        {aof_is_not_replayed, "append-only-file-user", DOCTOR_FAIL},
        {fsync_everysec, "appendfsync", DOCTOR_FAIL},
        {fsync_off_on_rewrite, "no-appendfsync-on-rewrite", DOCTOR_FAIL},
        {evicts, "maxmemory-policy", DOCTOR_FAIL},
        {config_hidden, "appendfsync", DOCTOR_FAIL},
        {read_only, "writable", DOCTOR_FAIL},
        {replica_missing, "replicas", DOCTOR_FAIL},
        {alone, "replicas", DOCTOR_WARN},
        {replica_unused, "replicas", DOCTOR_WARN},
        {full, "memory", DOCTOR_FAIL},
        {quiet_links_are_closed, "timeout", DOCTOR_WARN},
        {snapshots, "stop-writes-on-bgsave-error", DOCTOR_WARN},
        {newer_schema, "schema", DOCTOR_FAIL},
        {endings_missing, "missing-endings", DOCTOR_FAIL},
        {changes_lost, "lost-changes", DOCTOR_FAIL},
        {nodes_without_store, "lost-store", DOCTOR_FAIL},
        {nobody_may_ask_who_listens, "lost-store", DOCTOR_WARN},
        {earlier_member, "earlier-members", DOCTOR_WARN},
        {clock_a_little_off, "clock", DOCTOR_WARN},
        {clock_far_off, "clock", DOCTOR_FAIL},
        {time_a_little_ahead, "store-time", DOCTOR_WARN},
        {time_far_behind, "store-time", DOCTOR_FAIL},
        {no_key, "master-key", DOCTOR_FAIL},
        {old_certificate, "tls", DOCTOR_WARN},
        {bad_certificate, "internal-tls", DOCTOR_FAIL},
        {no_origin, "public-origin", DOCTOR_FAIL},
        {bad_origin, "public-origin", DOCTOR_FAIL},
        {plain_origin, "public-origin", DOCTOR_WARN},
        {no_audit_log, "audit-log", DOCTOR_WARN},
        {no_audit_log_here, "audit-log", DOCTOR_WARN},
        {no_revocation_log, "revocation-log", DOCTOR_WARN},
        {few_files, "file-limit", DOCTOR_WARN},
        {unreachable, "redis", DOCTOR_FAIL},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        make_fit();
        CASES[i].break_it();
        doctor_evaluate(&evidence, &report);
        const struct doctor_check *check = check_named(CASES[i].check);
        cr_expect_eq(check->status, CASES[i].status, "row %zu, %s: %s", i, check->name, check->detail);
        cr_expect(check->remedy, "row %zu, %s", i, check->name);
        cr_expect_eq(doctor_is_fit(&report), CASES[i].status == DOCTOR_WARN, "row %zu", i);
        for (size_t c = 0; c < report.count; c++)
            cr_expect(&report.checks[c] == check || CASES[i].break_it == config_hidden ||
                          report.checks[c].status == DOCTOR_OK,
                      "row %zu: %s too", i, report.checks[c].name);
    }
}

static void print_report(bool has_colour, struct buf *out)
{
    doctor_evaluate(&evidence, &report);
    buf_init(out, 64 * 1024);
    doctor_print(&report, has_colour, out);
    cr_assert_not(out->failed);
}

Test(doctor, tells_each_loss_that_nodes_report)
{
    for (enum loss loss = 0; loss < LOSS_COUNT; loss++) {
        make_fit();
        evidence.nodes = 3;
        evidence.losses[loss] = 2;
        doctor_evaluate(&evidence, &report);
        const struct doctor_check *check = check_named(LOSSES[loss].name);
        cr_expect_eq(check->status, DOCTOR_WARN, "%s", check->name);
        cr_expect(strstr(check->detail, LOSSES[loss].sentence) && strstr(check->detail, "2 of 3 nodes"), "%s",
                  check->detail);
        cr_expect(strstr(check->remedy, LOSSES[loss].alert), "%s", check->remedy);
    }
}

Test(doctor, prints_lines_that_fit_and_a_verdict)
{
    struct text rest, line;
    struct buf out;
    size_t width;

    make_fit();
    evidence.facts.appendfsync_always = evidence.facts.appendonly = false;
    settings.min_replicas = 0;
    print_report(false, &out);
    rest = buf_text(&out);
    while (text_next(&rest, '\n', &line))
        cr_expect(text_count_utf8(line, &width) && width <= 100, "%.*s", TEXT_ARG(line));
    cr_expect(memmem(out.ptr, out.len, "\nfail  appendfsync                  not always\n      ", 53), "%.*s",
              TEXT_ARG(buf_text(&out)));
    cr_expect(memmem(out.ptr, out.len, "\nNot fit: 2 checks failed, with 1 warning.\n", 43), "%.*s",
              TEXT_ARG(buf_text(&out)));
    cr_expect_not(memchr(out.ptr, '\x1b', out.len), "no colours unless asked for");
    buf_finish(&out);

    make_fit();
    print_report(false, &out);
    cr_expect(memmem(out.ptr, out.len, "\nFit.\n", 6), "%.*s", TEXT_ARG(buf_text(&out)));
    buf_finish(&out);
    make_fit();
    settings.public_origin = "http://console.example.org";
    print_report(true, &out);
    cr_expect(memmem(out.ptr, out.len, "\nFit, with 1 warning.\n", 22), "%.*s", TEXT_ARG(buf_text(&out)));
    cr_expect(memmem(out.ptr, out.len, "\x1b[33m!\x1b[0m     public-origin ", 29), "%.*s", TEXT_ARG(buf_text(&out)));
    buf_finish(&out);
}
