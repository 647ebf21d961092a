/* Facts about a Redis and the store in it. */
#pragma once
#include "core/keyring.h"
#include "lease/identity.h"
#include "redis/sentinel.h"

/* A larger difference between the store's time and Redis' clock is reported. Clocks always differ by less. */
enum { STORE_TIME_APART_MS = 1000 };

/* One examination of Redis, for the checks at start, while serving, and in doctor. */
struct store_facts {
    char redis_version[32]; /* the version of Redis that it is compatible with */
    char server[48];        /* what it is: "Redis 7.0.15", "Valkey 8.1.1" */
    /* Without CONFIG GET, appendonly and noeviction come from INFO, and the other settings are false or 0. */
    bool appendonly, appendfsync_always, no_fsync_on_rewrite_off, noeviction, writable;
    bool is_short; /* more than nine tenths of maxmemory are used */
    bool full;     /* memory is full: only scripts with allow-oom can write; `writable` stays true */
    /* How Redis replays its append-only file, which it does as the user `default`. */
    enum store_replay {
        STORE_REPLAY_UNKNOWN, /* the ACL forbids ACL DRYRUN */
        STORE_REPLAY_WHOLE,
        STORE_REPLAY_DROPS, /* that user may not write our keys: every transaction is dropped */
    } replay;
    bool save_off, stop_writes_on_failure_off; /* with either, writes go on after a failed snapshot */
    bool idle_timeout_off;                     /* `timeout`: Redis closes no connection because it is quiet */
    int64_t replicas;
    int64_t schema;                   /* 0: unknown */
    char id[STORE_ID_CHARS + 1];      /* empty: no store, or not the one expected */
    char moved[IDENTITY_PLACE_BYTES]; /* where the store has moved to; empty: it has not */
    unsigned partitions_there;        /* of the store that is there, if we expect another number; 0: we do not */
    int64_t clock_ahead_ms;           /* Redis' clock minus ours */
    int64_t time_ahead_ms;            /* the store's time (scheduled revocations go by it) minus Redis' clock */
    /* Losses of this Redis that nodes know of: changes that ended something, and others since an operator last accepted
     * a loss. Members of versions that do not tell what they have heard; nodes that listen although there is no store.
     */
    int64_t missing_endings, lost_changes, earlier_members, listeners_without_store;
    enum store_keys {
        STORE_KEYS_UNJUDGED, /* there is no keyring */
        STORE_KEYS_FIT,
        STORE_KEYS_OTHER,   /* this store's records were made with other keys than the current one */
        STORE_KEYS_LACKING, /* some records need a master key that was not given */
        STORE_KEYS_UNNOTED, /* the records come from a version that did not note its master key */
    } keys;
    char lacking[KEYRING_SHORT_NAME_CHARS + 1]; /* with STORE_KEYS_LACKING: the short name of one such key */
    bool any_key_will_do;                       /* STORE_KEY_ROTATES: the rules about master keys do not apply */
    int64_t unsealed_until_ms;                  /* until then records without a seal are accepted; 0: never */
    bool config_readable;                       /* false: the ACL forbids CONFIG GET; see above */
    bool durability_asserted;                   /* --redis-durability asserted */
    /* Parts of INFO that Redis lets this user not read. Only allowed with durability_asserted. */
    bool memory_hidden, persistence_hidden, replication_hidden;
    /* min-replicas-to-write and min-replicas-max-lag; 0 if unknown */
    int64_t replicas_to_write, replica_lag_s;
    bool is_cluster;         /* a Redis Cluster */
    bool is_of_cluster;      /* this Redis is a node of one, whatever --redis says */
    int64_t node_timeout_ms; /* its cluster-node-timeout; 0 if unknown */
    bool full_coverage_off;  /* cluster-require-full-coverage no: others go on without a primary that is lost */
    /* Sentinels: configured (0: --redis names Redis itself); that know the master; that agree on it; that must agree
     * before a failover; and how many exist by their own count. */
    int64_t sentinels, sentinels_knowing, sentinels_agreeing, sentinel_quorum, sentinels_known;
    char sentinel_trouble[SENTINEL_TROUBLE_BYTES]; /* as in struct sentinel_census */
    /* Replicas that Sentinel could promote, in any state: the higher of the Sentinels' and the master's count. */
    int64_t replicas_known;
    int64_t replicas_usual; /* the same, as the deployment is set up: see fence_replicas_usual() */
    /* This store's own settings and its node's lease (0: none); failover safety depends on them. */
    int64_t min_replicas, timeout_ms, lease_ms;
};
/* The smallest min-replicas-to-write that stops a replaced master from granting leases (rule 10): more than half of the
 * replicas left after one is promoted, because Sentinel reconfigures them one at a time. Only doctor uses it. Nodes
 * require just 1, so that adding a replica never stops them. */
int64_t store_fencing_replicas(const struct store_facts *facts);
