/* What is found at a Redis and in its store. */
#pragma once
#include "core/keyring.h"
#include "lease/identity.h"

/* What Redis is, for doctor and the check at start. */
struct store_facts {
    char redis_version[32];
    bool appendonly, appendfsync_always, no_fsync_on_rewrite_off, noeviction, writable;
    bool full;                                 /* writable by what must go on alone: no memory is left */
    bool save_off, stop_writes_on_failure_off; /* either: a snapshot that fails does not stop writes */
    int64_t replicas;
    int64_t schema;              /* 0: unknown */
    char id[STORE_ID_CHARS + 1]; /* empty: the store has no account yet */
    int64_t clock_ahead_ms;      /* of Redis against ours */
    enum store_keys {
        STORE_KEYS_UNJUDGED, /* there is no keyring */
        STORE_KEYS_FIT,
        STORE_KEYS_OTHER,   /* the current master key has made none of the store's records */
        STORE_KEYS_LACKING, /* a master key that has made some is not here */
        STORE_KEYS_UNNOTED, /* the store has records of a version that did not note its master key */
    } keys;
    char lacking[KEYRING_SHORT_NAME_CHARS + 1]; /* with STORE_KEYS_LACKING: one of them */
    bool any_key_will_do;                       /* STORE_KEY_ROTATES: no reason not to be fit */
    int64_t unsealed_until_ms;                  /* until when records without a seal are taken; 0: they are not */
    bool config_readable; /* CONFIG GET may be forbidden by ACL: then the four flags are unknown */
    /* min-replicas-to-write and min-replicas-max-lag; 0 where unknown */
    int64_t replicas_to_write, replica_lag_s;
    /* Sentinels: configured (0: none, the target is Redis itself), that know the master, that agree on it, that must
     * agree on its failure, and how many there are, by their own word. */
    int64_t sentinels, sentinels_knowing, sentinels_agreeing, sentinel_quorum, sentinels_known;
    /* Replicas that Sentinels may promote: that they know, or the master lists, in whatever state they are. */
    int64_t replicas_known;
    /* This store's own settings, and its node's lease (0: it has none), which failovers depend on. */
    int64_t min_replicas, timeout_ms, lease_ms;
};
/* The least min-replicas-to-write under which a master that was replaced grants no leases (rule 10): of the replicas
 * that remain when one is promoted more than half, for Sentinel moves them to the new master one after the other. For
 * doctor: nodes look for 1 at least, so that one replica more does not stop them. */
int64_t store_fencing_replicas(const struct store_facts *facts);
