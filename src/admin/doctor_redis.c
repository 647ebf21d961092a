/* What doctor says of Redis and of the store in it. */
#include "doctor_internal.h"

#include "admin_internal.h"
#include "lease/fence.h"
#include "engine/fitness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One-time codes are accepted one step (30 s) early or late. Half a step of clock difference begins to lock users out;
 * a second is worth a warning. */
enum { CLOCK_WARN_MS = 1000, CLOCK_FAIL_MS = 15000, TIME_FAIL_MS = 60000 };

/* Adds a fitness rule. The format makes its detail, whether it holds or not. */
PRINTF_LIKE(4, 5)
static void check_rule(struct doctor_report *report, const struct store_facts *facts, const char *name,
                       const char *format, ...)
{
    const struct fitness_rule *rule = fitness_rule(name);
    char detail[DOCTOR_DETAIL_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    doctor_add(report, name, rule->holds(facts) ? DOCTOR_OK : DOCTOR_FAIL, rule->remedy, "%s", detail);
}

/* Adds a setting that was read with CONFIG GET. */
static void check_setting(struct doctor_report *report, const struct store_facts *facts, const char *name, bool fits,
                          const char *value, const char *remedy)
{
    if (!facts->config_readable && !facts->durability_asserted)
        doctor_add(report, name, DOCTOR_FAIL, fitness_rule("config-get")->remedy,
                   "unknown: Redis does not let this user read its configuration");
    else
        doctor_add(report, name, fits ? DOCTOR_OK : DOCTOR_FAIL, remedy, fits ? "%s" : "not %s", value);
}

static void check_settings(struct doctor_report *report, const struct store_facts *facts, enum fitness_kind kind)
{
    struct store_facts seen = *facts;

    seen.durability_asserted = false;
    for (size_t i = 0; i < FITNESS_RULE_COUNT; i++) {
        const struct fitness_rule *rule = &FITNESS_RULES[i];

        if (rule->kind != kind || !rule->value)
            continue;
        if (rule->holds(facts) && !rule->holds(&seen))
            doctor_add(report, rule->name, DOCTOR_OK, NULL, "not visible, asserted");
        else
            check_setting(report, facts, rule->name, rule->holds(facts), rule->value, rule->remedy);
    }
}

static void check_durability(struct doctor_report *report, const struct store_facts *facts)
{
    if (!facts->durability_asserted)
        doctor_add(report, "redis-durability", DOCTOR_OK, NULL, "observed");
    else if (facts->config_readable)
        doctor_add(report, "redis-durability", DOCTOR_OK, NULL,
                   "asserted, but CONFIG GET is allowed: judged by what it shows");
    else
        doctor_add(
            report, "redis-durability", DOCTOR_WARN,
            "You vouch for it: make sure that this service keeps every write that it acknowledges, in a takeover too. "
            "Otherwise a revoked key is valid again.",
            "asserted; INFO shows %s",
            facts->persistence_hidden ? "nothing about it"
            : facts->appendonly       ? "an append-only file"
                                      : "no append-only file");
}

static void check_replay(struct doctor_report *report, const struct store_facts *facts)
{
    if (!facts->appendonly || (facts->durability_asserted && !facts->config_readable))
        return;
    if (facts->replay == STORE_REPLAY_UNKNOWN)
        doctor_add(
            report, "append-only-file-user", DOCTOR_WARN,
            "Redis reads its append-only file as the user `default`, who must keep all rights on our keys. To have it "
            "checked, grant +acl|dryrun to the user of --redis.",
            "unknown: Redis does not let this user ask");
    else
        check_rule(report, facts, "append-only-file-user", "%s",
                   facts->replay == STORE_REPLAY_WHOLE ? "`default` may write our keys"
                                                       : "`default` may not write our keys");
}

/* Only CONFIG GET shows it. */
static void check_snapshots(struct doctor_report *report, const struct store_facts *facts)
{
    if (!facts->config_readable)
        return;
    doctor_add(
        report, "stop-writes-on-bgsave-error",
        facts->save_off || facts->stop_writes_on_failure_off ? DOCTOR_OK : DOCTOR_WARN,
        "A failed snapshot would stop all changes, revocations included: set save \"\" (the append-only file holds "
        "everything) or stop-writes-on-bgsave-error no, by CONFIG SET and in redis.conf.",
        facts->save_off                     ? "no snapshots"
        : facts->stop_writes_on_failure_off ? "no"
                                            : "yes, and snapshots are enabled");
}

/* The same. Links are never quiet for longer than half a minute. */
static void check_idle_timeout(struct doctor_report *report, const struct store_facts *facts)
{
    if (facts->config_readable)
        doctor_add(
            report, "timeout", facts->idle_timeout_off ? DOCTOR_OK : DOCTOR_WARN,
            "Redis closes connections that are quiet for that long, and a node is not ready for a moment each time: "
            "set "
            "timeout 0, with CONFIG SET and in redis.conf.",
            facts->idle_timeout_off ? "0" : "not 0");
}

static void check_memory(struct doctor_report *report, const struct store_facts *facts)
{
    doctor_add(
        report, "memory", facts->full ? DOCTOR_FAIL : DOCTOR_OK,
        "Nothing new can be created; checks, sign-ins and revocations still work. Raise maxmemory, or free memory.",
        facts->full ? "full" : "not full");
}

static bool may_fail_over(const struct store_facts *facts)
{
    return facts->sentinels > 0 || facts->is_cluster;
}

static void check_replicas(struct doctor_report *report, const struct store_facts *facts, int64_t min_replicas)
{
    enum doctor_status status = DOCTOR_OK;
    const char *remedy = NULL;

    if (may_fail_over(facts) && min_replicas == 0) {
        status = DOCTOR_FAIL;
        remedy = "A failover loses changes that no replica has: set --min-replicas to 1 or more.";
    } else if (facts->replicas < min_replicas) {
        status = DOCTOR_FAIL;
        remedy = fitness_rule("replicas")->remedy;
    } else if (min_replicas == 0) {
        status = DOCTOR_WARN;
        remedy = facts->replicas > 0
                     ? "Changes are answered before a replica has them: set --min-replicas 1."
                     : "If this machine loses its disk, everything is lost: run a replica and set --min-replicas 1.";
    }
    if (status == DOCTOR_OK && may_fail_over(facts) && facts->replicas > min_replicas) {
        status = DOCTOR_WARN;
        remedy = "If two machines fail or are cut off at once, a failover may promote a replica that lacks a change. "
                 "Setting --min-replicas to the number of replicas prevents that, but then changes and checks need "
                 "every replica.";
    }
    doctor_add(report, "replicas", status, remedy, "%" PRId64 " connected, --min-replicas %" PRId64, facts->replicas,
               min_replicas);
}

static void check_sentinels(struct doctor_report *report, const struct store_facts *facts)
{
    int64_t known = facts->sentinels_known;
    enum doctor_status status = DOCTOR_OK;
    const char *remedy = NULL;

    if (facts->sentinels_agreeing < facts->sentinels_knowing || facts->sentinels_known < facts->sentinel_quorum) {
        status = DOCTOR_FAIL;
        remedy = "The Sentinels do not agree, or are too few for a failover: make sure that all of them monitor the "
                 "same master under this name and reach each other.";
    } else if (facts->sentinels_knowing < facts->sentinels) {
        status = DOCTOR_WARN;
        remedy = "Make sure that all Sentinels in --redis run, can be reached from here with the user and password in "
                 "--sentinel-auth-file, and monitor that name.";
    } else if (known < 3 || 2 * facts->sentinel_quorum <= known) {
        status = DOCTOR_WARN;
        remedy = "Run three Sentinels on three machines, with a quorum of two, to survive the loss of one.";
    }
    doctor_add(report, "sentinels", status, remedy,
               "%" PRId64 " of %" PRId64 " know the master, %" PRId64 " agree; quorum %" PRId64 " of %" PRId64 "%s%s",
               facts->sentinels_knowing, facts->sentinels, facts->sentinels_agreeing, facts->sentinel_quorum, known,
               facts->sentinel_trouble[0] ? "; " : "", facts->sentinel_trouble);
}

/* The settings that stop a replaced master (rule 10). */
static void check_fence(struct doctor_report *report, const struct store_facts *facts)
{
    check_setting(report, facts, "min-replicas-to-write", facts->replicas_to_write >= store_fencing_replicas(facts),
                  "half the number of replicas or more",
                  "A replaced master would keep granting leases: on every Redis, set min-replicas-to-write to half the "
                  "number of replicas, rounded up, by CONFIG SET and in redis.conf.");
    check_settings(report, facts, FITNESS_FAILOVER);
}

/* Of a cluster. Its own timeout stops a replaced primary too, but later. */
static void check_cluster(struct doctor_report *report, const struct store_facts *facts)
{
    bool stops_by_lag =
        facts->replicas_to_write >= 1 && facts->replica_lag_s >= 1 && facts->replica_lag_s <= FENCE_REPLICA_LAG_MAX_S;

    doctor_add(
        report, "cluster", stops_by_lag ? DOCTOR_OK : DOCTOR_WARN,
        "A primary that was cut off goes on taking writes until cluster-node-timeout stops it, and then they are lost: "
        "on every node, set min-replicas-to-write 1 and min-replicas-max-lag 2.",
        "cluster-node-timeout %" PRId64 " ms, min-replicas-to-write %" PRId64 ", min-replicas-max-lag %" PRId64,
        facts->node_timeout_ms, facts->replicas_to_write, facts->replica_lag_s);
    doctor_add(
        report, "cluster-require-full-coverage", facts->full_coverage_off ? DOCTOR_OK : DOCTOR_WARN,
        "If one primary fails, all others refuse everything until its replica has taken over: on every node, set "
        "cluster-require-full-coverage no, by CONFIG SET and in redis.conf.",
        facts->full_coverage_off ? "no" : "not no");
}

/* How surely a replaced master is kept from granting leases. */
static void check_takeover(struct doctor_report *report, const struct store_facts *facts,
                           const struct settings *settings)
{
    static const struct {
        enum doctor_status status;
        const char *detail;
    } TAKEOVERS[] = {
        [TAKEOVER_ALL] = {DOCTOR_OK, "every replica"},
        [TAKEOVER_MOST] = {DOCTOR_OK, "at least half of the replicas"},
        [TAKEOVER_FENCE] = {DOCTOR_WARN, "fewer than half of the replicas"},
    };
    enum takeover takeover = takeover_of(facts->replicas_known, settings->min_replicas);

    if (takeover != TAKEOVER_ALL && settings->redis_timeout_ms > FENCE_TIMEOUT_MAX_MS)
        doctor_add(
            report, "leases", DOCTOR_FAIL,
            "No node starts, because it would stay too long with a replaced master: lower --redis-timeout-ms to 1000, "
            "or raise --min-replicas to the number of replicas.",
            "--redis-timeout-ms %" PRId64, settings->redis_timeout_ms);
    else if (!fitness_rule("min-replicas")->holds(facts))
        doctor_add(report, "leases", DOCTOR_FAIL, fitness_rule("min-replicas")->remedy,
                   "fewer than half of the replicas must acknowledge each lease: --min-replicas %" PRId64
                   " of %" PRId64,
                   settings->min_replicas, facts->replicas_usual);
    else
        doctor_add(
            report, "leases", TAKEOVERS[takeover].status,
            "A replaced master can continue with replicas that have not moved yet. Only its own min-replicas-to-write "
            "stops it then, and a clock set back or a frozen machine delays that: raise --min-replicas to half the "
            "number of replicas, rounded up.",
            "%s must acknowledge each lease: --min-replicas %" PRId64 " of %" PRId64, TAKEOVERS[takeover].detail,
            settings->min_replicas, facts->replicas_known);
}

/* If one name covers replicas, or masters of other stores, each connection may reach a different server. */
static void check_address(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    unsigned v4 = evidence->addresses_v4, v6 = evidence->addresses_v6;
    enum doctor_status status = v4 > 1 || v6 > 1 ? DOCTOR_FAIL : v4 + v6 > 1 ? DOCTOR_WARN : DOCTOR_OK;

    doctor_add(report, "address", status,
               status == DOCTOR_FAIL
                   ? "Connections would reach different servers, and requests would be answered 503: set "
                     "--redis to a name that resolves to the master only, or to redis-sentinel://."
                   : "Make sure that both addresses reach the same Redis, or use one of them.",
               v4 + v6 > 1 ? "the name in --redis has %u addresses" : "one server", v4 + v6);
}

static void check_transport(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    int64_t left_s = evidence->certificate_not_after_s - evidence->now_s;
    bool is_ending = evidence->certificate_not_after_s > 0 && left_s < LOSS_CERTIFICATE_S;

    if (!evidence->has_tls)
        doctor_add(
            report, "redis-tls", evidence->is_elsewhere ? DOCTOR_WARN : DOCTOR_OK,
            "Names, email addresses and the Redis password cross the network in clear text: use rediss://, or a VPN.",
            evidence->is_elsewhere ? "no TLS" : "no TLS, on this machine");
    else if (is_ending)
        doctor_add(report, "redis-tls", DOCTOR_WARN,
                   "Renew --redis-cert: once it has expired, Redis refuses this node.",
                   "TLS; --redis-cert expires in %" PRId64 " days", left_s / DOCTOR_DAY_S);
    else
        doctor_add(report, "redis-tls", DOCTOR_OK, NULL, "TLS, with a verified certificate");
}

static void check_identity(struct doctor_report *report, const struct store_facts *facts, unsigned expected)
{
    bool is_empty = facts->id[0] == '\0';

    if (facts->partitions_there > 0) {
        doctor_add(report, "store", DOCTOR_FAIL,
                   "Set --partitions to that number for all nodes and commands: it never changes.",
                   "its number of partitions is %u, not %u", facts->partitions_there, expected);
        return;
    }
    if (facts->moved[0]) {
        doctor_add(report, "store", DOCTOR_FAIL, fitness_rule("moved")->remedy, "has moved to %s", facts->moved);
        return;
    }

    doctor_add(report, "store", is_empty ? DOCTOR_WARN : DOCTOR_OK,
               "Nodes answer 503 until the first account is created: chatelaine account create. If there were accounts "
               "before, the data is lost, or --redis or --prefix names another store.",
               "%s", is_empty ? "empty" : facts->id);
}

static void check_losses(struct doctor_report *report, const struct store_facts *facts)
{
    if (facts->listeners_without_store < 0)
        doctor_add(report, "lost-store", DOCTOR_WARN,
                   "Whether nodes lost a store here cannot be seen: grant +pubsub to the user of --redis.",
                   "unknown: Redis does not let this user ask");
    else if (facts->listeners_without_store > 0)
        check_rule(report, facts, "lost-store", "there is no store, and nodes that listen: %" PRId64,
                   facts->listeners_without_store);
    check_rule(report, facts, "missing-endings", "%" PRId64 " missing", facts->missing_endings);
    check_rule(report, facts, "lost-changes", "%" PRId64 " lost", facts->lost_changes);
    if (facts->earlier_members > 0)
        doctor_add(report, "earlier-members", DOCTOR_WARN, fitness_rule("earlier-members")->remedy,
                   "%" PRId64 " registered", facts->earlier_members);
}

static void check_clock(struct doctor_report *report, int64_t ahead_ms)
{
    int64_t apart_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    enum doctor_status status = apart_ms > CLOCK_FAIL_MS   ? DOCTOR_FAIL
                                : apart_ms > CLOCK_WARN_MS ? DOCTOR_WARN
                                                           : DOCTOR_OK;

    doctor_add(report, "clock", status, "Set both clocks by NTP: one-time codes are valid for seconds only.",
               "Redis is %" PRId64 " ms %s this machine", apart_ms, ahead_ms < 0 ? "behind" : "ahead of");
}

static void check_store_time(struct doctor_report *report, int64_t ahead_ms)
{
    char apart[APART_BYTES];

    if (llabs(ahead_ms) <= STORE_TIME_APART_MS) {
        doctor_add(report, "store-time", DOCTOR_OK, NULL, "scheduled revocations go by Redis' clock");
        return;
    }
    apart_print(ahead_ms, apart);
    doctor_add(report, "store-time", llabs(ahead_ms) > TIME_FAIL_MS ? DOCTOR_FAIL : DOCTOR_WARN,
               ahead_ms < 0
                   ? "Redis' clock was set forward, or a Redis whose clock is ahead took over. Keys that end in "
                     "between are answered 503. Set the clocks of all Redis machines by NTP. If Redis' clock is "
                     "right, run 'chatelaine store settle-time'."
                   : "Redis' clock was set back, or a Redis whose clock is behind took over. Scheduled revocations "
                     "take effect that much before their time by this clock. Set the clocks of all Redis machines "
                     "by NTP. If Redis' clock is right, run 'chatelaine store settle-time'.",
               "scheduled revocations go by a time that is %s Redis' clock", apart);
}

/* The lines below it tell of the first partition that is unfit. */
static void check_partitions(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    if (evidence->partitions > 1)
        doctor_add(
            report, "partitions", evidence->partitions_well == evidence->partitions ? DOCTOR_OK : DOCTOR_FAIL,
            "Accounts in the others are answered 503: bring back the Redis that holds them, or set it up as below.",
            "%u of %u can be reached and are fit%s%s", evidence->partitions_well, evidence->partitions,
            evidence->trouble && evidence->trouble[0] ? "; " : "", evidence->trouble ? evidence->trouble : "");
}

void doctor_check_redis(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct store_facts *facts = &evidence->facts;

    doctor_add(report, "redis", evidence->is_reachable ? DOCTOR_OK : DOCTOR_FAIL,
               "Make sure that Redis runs, and that --redis has its address, with user and password if it needs them.",
               "%s", evidence->is_reachable ? "answers" : evidence->trouble);
    if (!evidence->is_reachable)
        return;
    check_partitions(report, evidence);
    check_address(report, evidence);
    check_transport(report, evidence);
    check_rule(report, facts, "redis-version", "%s", facts->server);
    if (!fitness_rule("redis-cluster")->holds(facts))
        check_rule(report, facts, "redis-cluster", "--redis names one Redis");
    check_durability(report, facts);
    check_settings(report, facts, FITNESS_DURABLE);
    check_replay(report, facts);
    check_snapshots(report, facts);
    check_idle_timeout(report, facts);
    check_memory(report, facts);
    check_rule(report, facts, "writable",
               facts->writable ? "Redis accepts our changes" : "Redis does not accept our changes");
    check_replicas(report, facts, evidence->settings->min_replicas);
    if (facts->sentinels > 0) {
        check_sentinels(report, facts);
        check_fence(report, facts);
        check_takeover(report, facts, evidence->settings);
    } else if (facts->is_cluster) {
        check_cluster(report, facts);
        check_takeover(report, facts, evidence->settings);
    }
    if (!facts->moved[0])
        check_rule(report, facts, "schema", "version %" PRId64, facts->schema);
    check_identity(report, facts, evidence->partitions);
    check_losses(report, facts);
    check_clock(report, facts->clock_ahead_ms);
    check_store_time(report, facts->time_ahead_ms);
}
