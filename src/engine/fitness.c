#include "engine/fitness.h"
#include "base/check.h"
#include "lease/fence.h"
#include "state.h"

#include <string.h>

static bool version_fits(const struct store_facts *facts)
{
    struct text rest = text_of(facts->redis_version), major;
    uint64_t number;

    return text_next(&rest, '.', &major) && text_to_u64(major, INT32_MAX, &number) && number >= 7;
}

/* A node of a cluster refuses scripts whose names lie in several slots, as those of one Redis do. */
static bool is_named_as_cluster(const struct store_facts *facts)
{
    return facts->is_cluster || !facts->is_of_cluster;
}

static bool is_still_here(const struct store_facts *facts)
{
    return facts->moved[0] == '\0';
}

/* A store that has moved has a schema newer than any, but was not written by a newer version. */
static bool schema_fits(const struct store_facts *facts)
{
    return facts->schema <= STORE_SCHEMA || facts->moved[0];
}

static bool is_writable(const struct store_facts *facts)
{
    return facts->writable;
}

static bool has_replicas(const struct store_facts *facts)
{
    return facts->replication_hidden || facts->replicas >= facts->min_replicas; /* WAIT counts them in any case */
}

static bool key_made_the_store(const struct store_facts *facts)
{
    return facts->any_key_will_do || facts->keys != STORE_KEYS_OTHER;
}

static bool has_all_keys(const struct store_facts *facts)
{
    return facts->any_key_will_do || facts->keys != STORE_KEYS_LACKING;
}

static bool store_noted_its_key(const struct store_facts *facts)
{
    return facts->any_key_will_do || facts->keys != STORE_KEYS_UNNOTED;
}

/* The operator vouches for what cannot be seen. Whatever can be seen is judged as ever. That Redis keeps no append-only
 * file, which INFO shows, contradicts nothing: such services keep writes elsewhere. */
static bool is_vouched_for(const struct store_facts *facts)
{
    return facts->durability_asserted && !facts->config_readable;
}

static bool has_append_only_file(const struct store_facts *facts)
{
    return facts->appendonly || is_vouched_for(facts);
}

static bool evicts_nothing(const struct store_facts *facts)
{
    return facts->noeviction || (is_vouched_for(facts) && facts->memory_hidden);
}

static bool is_config_readable(const struct store_facts *facts)
{
    return facts->config_readable || facts->durability_asserted;
}

static bool syncs_each_write(const struct store_facts *facts)
{
    return facts->appendfsync_always || is_vouched_for(facts);
}

static bool syncs_on_rewrite(const struct store_facts *facts)
{
    return facts->no_fsync_on_rewrite_off || is_vouched_for(facts);
}

static bool replays_each_write(const struct store_facts *facts)
{
    return facts->replay != STORE_REPLAY_DROPS || is_vouched_for(facts);
}

static bool master_needs_a_replica(const struct store_facts *facts)
{
    return facts->sentinels == 0 || facts->replicas_to_write >= 1;
}

static bool master_stops_in_time(const struct store_facts *facts)
{
    return facts->sentinels == 0 || (facts->replica_lag_s >= 1 && facts->replica_lag_s <= FENCE_REPLICA_LAG_MAX_S);
}

/* Another Redis may take over by itself, and nobody vouches for what it then knows. */
static bool may_be_replaced(const struct store_facts *facts)
{
    return facts->sentinels > 0 || (facts->is_cluster && !facts->durability_asserted);
}

/* Every replica that could be promoted has acknowledged every heartbeat. */
static bool all_replicas_know(const struct store_facts *facts)
{
    return !may_be_replaced(facts) || takeover_of(facts->replicas_known, facts->min_replicas) == TAKEOVER_ALL;
}

/* Otherwise enough replicas for leases of the old master may be left to it, and its own clock alone stops it. */
static bool half_of_the_replicas_know(const struct store_facts *facts)
{
    return !may_be_replaced(facts) || takeover_of(facts->replicas_usual, facts->min_replicas) != TAKEOVER_FENCE;
}

static bool new_master_knows_the_lease(const struct store_facts *facts)
{
    return all_replicas_know(facts) || facts->lease_ms <= FENCE_LEASE_MAX_MS;
}

static bool node_leaves_in_time(const struct store_facts *facts)
{
    return all_replicas_know(facts) || facts->lease_ms == 0 || facts->timeout_ms <= FENCE_TIMEOUT_MAX_MS;
}

static bool has_every_ending(const struct store_facts *facts)
{
    return facts->missing_endings == 0;
}

static bool has_every_change(const struct store_facts *facts)
{
    return facts->lost_changes == 0;
}

static bool has_its_store(const struct store_facts *facts)
{
    return facts->listeners_without_store <= 0;
}

static bool is_told_by_all(const struct store_facts *facts)
{
    return facts->earlier_members == 0;
}

/* In order of precedence: only the first broken rule is reported. */
const struct fitness_rule FITNESS_RULES[] = {
    {"redis-version", FITNESS_USABLE, version_fits, NULL, "Redis is older than 7.0: upgrade it."},
    {"redis-cluster", FITNESS_USABLE, is_named_as_cluster, NULL,
     "This Redis is a node of a Redis Cluster: write redis-cluster:// in --redis."},
    {"moved", FITNESS_USABLE, is_still_here, NULL,
     "The store was copied to another place, and is served there: give nodes and commands that address. Copying it "
     "back "
     "makes this place serve again; if the other is lost for good, 'chatelaine store copy --undo' does."},
    {"schema", FITNESS_USABLE, schema_fits, NULL,
     "The store was written by a newer chatelaine: upgrade this one, or restore the backup made before the upgrade."},
    {"writable", FITNESS_WAITS, is_writable, NULL,
     "Redis refuses our scripts or writes: point --redis at the master; grant its user +@all on our keys and channels "
     "(~prefix* &prefix*); and make sure that it has memory, disk space and the replicas that its "
     "min-replicas-to-write requires."},
    {"replicas", FITNESS_WAITS, has_replicas, NULL,
     "Fewer replicas are online than --min-replicas requires, so changes are answered 503: start the missing ones or "
     "lower --min-replicas."},
    {"master-key", FITNESS_KEYS, key_made_the_store, NULL,
     "This master key is not the one that this store was created with: pass the right one as --master-key-file (to "
     "replace it, run 'chatelaine master-key rotate' first)."},
    {"retired-master-keys", FITNESS_KEYS, has_all_keys, NULL,
     "A master key that sealed some of this store's records is missing: pass it as --retired-master-key-file; "
     "otherwise valid keys would be refused."},
    {"noted-master-key", FITNESS_KEYS, store_noted_its_key, NULL,
     "This store was created by an earlier version that did not note its master key: run 'chatelaine master-key rotate "
     "--adopt' once, with the key that it was created with."},

    {"config-get", FITNESS_DURABLE, is_config_readable, NULL,
     "The Redis user may not run CONFIG GET, so durability cannot be checked: grant it +config|get (ACL SETUSER). If "
     "this "
     "is a managed service that forbids CONFIG to everyone, --redis-durability asserted lets you vouch for it."},
    {"appendonly", FITNESS_DURABLE, has_append_only_file, "yes",
     "Redis keeps no append-only file, so a restart loses keys and revocations: set appendonly yes, with CONFIG SET "
     "and in redis.conf."},
    {"maxmemory-policy", FITNESS_DURABLE, evicts_nothing, "noeviction",
     "Redis may evict keys and revocations when its memory is full: set maxmemory-policy noeviction, with CONFIG SET "
     "and in redis.conf (of a managed service: in its parameters)."},
    {"appendfsync", FITNESS_DURABLE, syncs_each_write, "always",
     "Redis does not sync each write to disk, so a crash brings revoked keys back: set appendfsync always, with CONFIG "
     "SET and in redis.conf."},
    {"no-appendfsync-on-rewrite", FITNESS_DURABLE, syncs_on_rewrite, "no",
     "Redis does not sync writes while it rewrites its append-only file, so a crash then loses them: set "
     "no-appendfsync-on-rewrite no, with CONFIG SET and in redis.conf."},
    {"append-only-file-user", FITNESS_DURABLE, replays_each_write, NULL,
     "Redis reads its append-only file as the user `default`, who may not write our keys, so a restart loses keys and "
     "revocations: give this user all rights again (ACL SETUSER default ~* &* +@all), and a password or `off`; save "
     "that in its ACL file or redis.conf before Redis restarts."},

    {"min-replicas-to-write", FITNESS_FAILOVER, master_needs_a_replica, NULL,
     "After a failover the old master would keep granting leases: set min-replicas-to-write 1 on every Redis, with "
     "CONFIG SET and in redis.conf."},
    {"min-replicas-max-lag", FITNESS_FAILOVER, master_stops_in_time, "1 or 2",
     "After a failover the old master would grant leases for too long: set min-replicas-max-lag 2 on every Redis, with "
     "CONFIG SET and in redis.conf."},
    {"lease-ms", FITNESS_FAILOVER, new_master_knows_the_lease, NULL,
     "A promoted replica may not know of leases this long: lower --lease-ms to 1000, or raise --min-replicas to the "
     "number of replicas."},
    {"redis-timeout-ms", FITNESS_FAILOVER, node_leaves_in_time, NULL,
     "After a failover a node would stay with the old master for too long: lower --redis-timeout-ms to 1000, or raise "
     "--min-replicas to the number of replicas."},

    {"lost-store", FITNESS_WHOLE, has_its_store, NULL,
     "Nodes listen here, but there is no store: restore the data that they served, or, if nothing was here before, "
     "create "
     "the first account with 'chatelaine account create'."},
    {"missing-endings", FITNESS_WHOLE, has_every_ending, NULL,
     "Redis has lost changes that ended something (a key, a session, a person, an account), and nodes answer 503: "
     "bring "
     "back the Redis that has them, or replay the revocation logs ('chatelaine key revoke --from-log') and run "
     "'chatelaine store accept-loss'."},
    {"lost-changes", FITNESS_WHOLE, has_every_change, NULL,
     "Redis has lost changes that nodes had answered, such as new keys and people: find out why, tell whom it "
     "concerns, "
     "and run 'chatelaine store accept-loss'."},
    {"earlier-members", FITNESS_WHOLE, is_told_by_all, NULL,
     "Nodes of an earlier version are registered, which do not repeat what they have heard: while one is, a Redis that "
     "has lost a revocation may give a key back. Upgrade all nodes."},
    {"min-replicas", FITNESS_START, half_of_the_replicas_know, NULL,
     "Fewer than half of the replicas must acknowledge each lease, so after a failover nothing but a clock may stop "
     "the "
     "old master, and a revoked key may be accepted: raise --min-replicas to half the number of replicas, rounded up. "
     "Replicas that are gone for good count until they are forgotten (SENTINEL RESET, CLUSTER FORGET)."},
};
const size_t FITNESS_RULE_COUNT = sizeof FITNESS_RULES / sizeof *FITNESS_RULES;

const struct fitness_rule *fitness_rule(const char *name)
{
    for (size_t i = 0; i < FITNESS_RULE_COUNT; i++)
        if (strcmp(FITNESS_RULES[i].name, name) == 0)
            return &FITNESS_RULES[i];
    UNREACHABLE();
}

const char *fitness_breach(const struct store_facts *facts, unsigned kinds)
{
    for (size_t i = 0; i < FITNESS_RULE_COUNT; i++)
        if ((FITNESS_RULES[i].kind & kinds) && !FITNESS_RULES[i].holds(facts))
            return FITNESS_RULES[i].remedy;
    return NULL;
}
