#include "doctor_internal.h"

#include "admin_internal.h"
#include "base/check.h"
#include "core/address.h"
#include "lease/fence.h"
#include "engine/fitness.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One-time codes are accepted one step (30 s) early or late. Half a step of clock difference begins to lock users out;
 * a second is worth a warning. */
enum { CLOCK_WARN_MS = 1000, CLOCK_FAIL_MS = 15000, TIME_FAIL_MS = 60000 };
enum { DAY_S = 24 * 60 * 60 };

void doctor_add(struct doctor_report *report, const char *name, enum doctor_status status, const char *remedy,
                const char *format, ...)
{
    CHECK(report->count < DOCTOR_CHECKS_MAX);
    struct doctor_check *check = &report->checks[report->count++];
    va_list args;

    check->name = name;
    check->status = status;
    check->remedy = status == DOCTOR_OK ? NULL : remedy;
    va_start(args, format);
    vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
}

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
                   "TLS; --redis-cert expires in %" PRId64 " days", left_s / DAY_S);
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

static void check_redis(struct doctor_report *report, const struct doctor_evidence *evidence)
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

static void check_origin(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const char *origin = evidence->settings->public_origin;

    if (!origin)
        doctor_add(report, "public-origin", DOCTOR_FAIL,
                   "No node starts without it: pass --public-origin as on the nodes.", "not given");
    else if (evidence->origin_trouble)
        doctor_add(report, "public-origin", DOCTOR_FAIL, "Write it as in https://console.example.org.", "%s",
                   evidence->origin_trouble);
    else
        doctor_add(
            report, "public-origin", settings_origin_is_https(origin) ? DOCTOR_OK : DOCTOR_WARN,
            "Browsers send the session cookie only over https: put TLS in front, and set --public-origin to https://….",
            "%s", origin);
}

/* Only this machine reaches it. */
static bool is_local(const char *listen)
{
    struct address address;
    struct text at = text_of(listen);

    return text_starts_with(at, TEXT("unix:")) || text_starts_with(at, TEXT("localhost:")) ||
           (address_parse(at, &address) && address_is_loopback(&address));
}

static void check_certificates(struct doctor_report *report, const char *name, const struct doctor_tls *tls)
{
    if (tls->trouble[0])
        doctor_add(report, name, DOCTOR_FAIL,
                   "Correct the files. A node that runs keeps the old certificates until then.", "%s", tls->trouble);
    else
        doctor_add(report, name, tls->left_s < LOSS_CERTIFICATE_S ? DOCTOR_WARN : DOCTOR_OK,
                   "Renew the certificate: nobody can connect once it has expired.",
                   "the first certificate to expire has %" PRId64 " days left", tls->left_s / DAY_S);
}

/* exposed: what crosses the network, and what to set. */
static void check_tls(struct doctor_report *report, const char *name, const struct doctor_tls *tls, const char *listen,
                      const char *exposed)
{
    if (tls->is_on)
        check_certificates(report, name, tls);
    else if (is_local(listen))
        doctor_add(report, name, DOCTOR_OK, NULL, "no TLS, on this machine: %s", listen);
    else
        doctor_add(report, name, DOCTOR_WARN, exposed, "no TLS: %s", listen);
}

static void check_listeners(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct settings *settings = evidence->settings;
    bool is_private = is_local(settings->internal_listen);

    check_tls(
        report, "tls", &evidence->tls, settings->listen,
        "Keys and passwords cross the network in clear text: set --tls-cert and --tls-key, unless a proxy on this "
        "machine ends TLS.");
    check_tls(report, "internal-tls", &evidence->internal_tls, settings->internal_listen,
              "Gateways' checks carry keys in clear text: set --internal-tls-cert, --internal-tls-key and "
              "--internal-client-ca.");
    doctor_add(
        report, "internal-client-ca", is_private || settings->internal_client_ca ? DOCTOR_OK : DOCTOR_WARN,
        "Everybody who reaches --internal-listen can try keys and read metrics: set --internal-client-ca, so that only "
        "gateways and Prometheus are answered.",
        "%s",
        settings->internal_client_ca ? "clients must show a certificate"
        : is_private                 ? "no client certificates, on this machine"
                                     : "no client certificates");
}

static void check_key(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    static const char *const DETAILS[] = {
        [STORE_KEYS_UNJUDGED] = "readable by this user only",
        [STORE_KEYS_FIT] = "readable by this user only, and the one that made this store",
        [STORE_KEYS_OTHER] = "not the one that made this store",
        [STORE_KEYS_LACKING] = "the store has records of another master key, which is missing",
        [STORE_KEYS_UNNOTED] = "the store does not record which master key made it",
    };
    const struct store_facts *facts = &evidence->facts;
    enum store_keys keys = evidence->is_reachable ? facts->keys : STORE_KEYS_UNJUDGED;
    const char *breach = evidence->is_reachable ? fitness_breach(facts, FITNESS_KEYS) : NULL;

    if (evidence->key_trouble)
        doctor_add(report, "master-key", DOCTOR_FAIL,
                   "No node starts without it: pass --master-key-file as on the nodes.", "%s", evidence->key_trouble);
    else
        doctor_add(report, "master-key", breach ? DOCTOR_FAIL : DOCTOR_OK, breach, "%s%s%s", DETAILS[keys],
                   keys == STORE_KEYS_LACKING ? ": " : "", keys == STORE_KEYS_LACKING ? facts->lacking : "");
}

/* What still needs a retired master key, so that it must stay in the files. */
static void check_retired(struct doctor_report *report, const struct key_census *census, size_t i)
{
    const struct census_row *row = &census->of[i];

    if (!key_census_needs(census, i))
        doctor_add(report, "retired-key", DOCTOR_OK, NULL, "%s: nothing needs it any more", census->names[i]);
    else
        doctor_add(report, "retired-key", DOCTOR_OK, NULL,
                   "%s: needed by %" PRIu64 " active keys, %" PRIu64 " passwords, recovery codes of %" PRIu64
                   " users, %" PRIu64 " seals",
                   census->names[i], row->keys, row->passwords, row->codes, row->seals);
}

static void check_records(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct key_census *census = &evidence->census;
    bool is_open = evidence->facts.unsealed_until_ms > 0;
    enum doctor_status status = census->altered > 0               ? DOCTOR_FAIL
                                : is_open || census->unsealed > 0 ? DOCTOR_WARN
                                                                  : DOCTOR_OK;

    for (size_t i = 1; i < census->generations; i++)
        check_retired(report, census, i);
    doctor_add(
        report, "records", status,
        is_open ? "Records without a seal are still accepted: once no node of the earlier version runs, run "
                  "'chatelaine master-key rotate'."
                : "Somebody else wrote to Redis: the nodes' logs name the records ('altered in Redis'). Revoke those "
                  "keys, and find out who has access.",
        "%" PRIu64 " active keys made with the current master key, %" PRIu64 " with an unknown one; %" PRIu64
        " records without a seal, %" PRIu64 " altered",
        census->of[0].keys, census->keys_unknown, census->unsealed, census->altered);
    doctor_add(
        report, "sign-in", census->users_unknown > 0 ? DOCTOR_WARN : DOCTOR_OK,
        "These users cannot sign in: add the master key that made their secrets to --retired-master-key-file, or run "
        "'chatelaine user reset-password' and 'user reset-totp'.",
        "%" PRIu64 " of %" PRIu64 " users have secrets made with a missing master key", census->users_unknown,
        census->users);
}

static void check_scopes(struct doctor_report *report, const struct key_census *census)
{
    char named[CENSUS_KEYS_NAMED * ID_TEXT_BYTES] = "";
    struct buf out;

    buf_init_fixed(&out, named, sizeof named - 1);
    for (size_t i = 0; i < census->keys_above_role && i < CENSUS_KEYS_NAMED; i++)
        buf_printf(&out, i > 0 ? " %s" : "%s", census->above_role[i].text);
    doctor_add(
        report, "key-scopes", census->keys_above_role > 0 ? DOCTOR_WARN : DOCTOR_OK,
        "Ask whoever uses these keys which scopes they need, create keys with those, and revoke these with 'chatelaine "
        "key revoke'. 'chatelaine key show' says whose they are.",
        "%" PRIu64 " active keys hold scopes that the role of their person may not give%s%.*s", census->keys_above_role,
        out.len ? ": " : "", TEXT_ARG(buf_text(&out)));
}

/* A node takes over what no other logs within two minutes. */
enum { BACKLOG_WAIT_MS = 5 * 60 * 1000, BACKLOG_MS_PER_S = 1000 };

static bool needs_attention(const struct audit_backlog *backlog)
{
    return backlog->dropped > 0 || (backlog->count > 0 && backlog->oldest_ms > BACKLOG_WAIT_MS);
}

static void check_backlog(struct doctor_report *report, const struct audit_backlog *backlog)
{
    bool is_late = backlog->count > 0 && backlog->oldest_ms > BACKLOG_WAIT_MS;

    doctor_add(
        report, "audit-log", needs_attention(backlog) ? DOCTOR_WARN : DOCTOR_OK,
        is_late ? "No node writes them: look at the nodes' log lines about the audit log, and set --audit-log on at "
                  "least one node. Beyond 100,000 of each class the oldest are dropped."
                : "They are gone for good: say so where you keep the logs, then delete the key 'log_dropped' in Redis.",
        "%" PRId64 " events wait for one, the oldest for %" PRId64 " s; %" PRId64 " were dropped", backlog->count,
        backlog->oldest_ms / BACKLOG_MS_PER_S, backlog->dropped);
}

static void check_reports(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    for (enum loss i = 0; i < LOSS_COUNT; i++)
        if (evidence->losses[i] > 0)
            doctor_add(report, LOSSES[i].name, DOCTOR_WARN, LOSSES[i].remedy, "%u of %u nodes: %s", evidence->losses[i],
                       evidence->nodes, LOSSES[i].sentence);
}

static void check_audit_log(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct audit_backlog *backlog = &evidence->backlog;

    if (evidence->has_backlog && needs_attention(backlog))
        check_backlog(report, backlog);
    else if (!evidence->settings->audit_log)
        doctor_add(
            report, "audit-log", DOCTOR_WARN,
            "Whoever can write to Redis can change the audit trail, and nothing proves it: set --audit-log, a file of "
            "its own for each node.",
            evidence->has_backlog && backlog->has_logs ? "not set, though nodes write one" : "not set");
    else if (evidence->has_backlog && backlog->has_logs)
        check_backlog(report, backlog);
    else
        doctor_add(report, "audit-log", DOCTOR_OK, NULL, "set; no node writes one yet");
}

static void check_logs(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    bool has_log = evidence->settings->revocation_log;

    check_audit_log(report, evidence);
    doctor_add(report, "revocation-log", has_log ? DOCTOR_OK : DOCTOR_WARN,
               "Once a backup of Redis is restored, keys that were revoked since work again: set --revocation-log.",
               has_log ? "set" : "not set");
}

/* What 'serve' refuses besides what other checks are about, and what it warns of. */
static void check_own_settings(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct unknown_settings *unknown = evidence->settings->unknown;
    struct text rest = evidence->mistakes, mistake;
    char sentence[DOCTOR_DETAIL_BYTES];
    struct buf out;

    for (size_t i = 0; i < DOCTOR_MISTAKES_MAX && text_next(&rest, '\n', &mistake) && mistake.len > 0; i++)
        doctor_add(report, "settings", DOCTOR_FAIL, "No node starts with these settings.", "%.*s", TEXT_ARG(mistake));
    for (size_t i = 0; unknown && i < unknown->count; i++) {
        buf_init_fixed(&out, sentence, sizeof sentence);
        unknown_setting_print(&unknown->of[i], &out);
        doctor_add(report, "settings", DOCTOR_FAIL,
                   "Correct the name, or remove it: 'chatelaine serve --help' lists all.", "%.*s",
                   TEXT_ARG(buf_text(&out)));
    }
}

void doctor_evaluate(const struct doctor_evidence *evidence, struct doctor_report *ret_report)
{
    const struct settings *settings = evidence->settings;
    uint64_t needed = settings_files_needed(settings);

    *ret_report = (struct doctor_report){0};
    check_own_settings(ret_report, evidence);
    check_redis(ret_report, evidence);
    check_key(ret_report, evidence);
    if (evidence->is_counted) {
        check_records(ret_report, evidence);
        check_scopes(ret_report, &evidence->census);
    }
    check_logs(ret_report, evidence);
    check_reports(ret_report, evidence);
    check_origin(ret_report, evidence);
    check_listeners(ret_report, evidence);
    doctor_add(
        ret_report, "file-limit", evidence->file_limit >= needed ? DOCTOR_OK : DOCTOR_WARN,
        "Nodes accept fewer connections than --connections-max: raise the limit (ulimit -Hn, LimitNOFILE=), or lower "
        "--connections-max.",
        "%" PRIu64 " open files allowed, up to %" PRIu64 " needed", evidence->file_limit, needed);
}

bool doctor_is_fit(const struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->checks[i].status >= DOCTOR_UNPROVEN)
            return false;
    return true;
}
