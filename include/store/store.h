/* The store: three links to one Redis (checks, other scripts that read, changes), so that a change that waits for
 * replicas never holds up a check; the embedded scripts, the key prefix. Other store headers are its verbs. All verbs
 * are asynchronous: done runs exactly once, later, within the timeout. */
#pragma once
#include "core/id.h"
#include "core/keyring.h"
#include "redis/link.h"

enum store_result {
    STORE_OK,
    STORE_NOT_FOUND,
    STORE_CONFLICT, /* exists already, was used already: the verb says which */
    STORE_REFUSED,  /* the verb says when */
    /* The actor's credential is no longer valid (struct credential); nothing was changed. */
    STORE_ACTOR_REVOKED,  /* a key that was revoked meanwhile */
    STORE_ACTOR_UNKNOWN,  /* a session that is over, a key that is gone */
    STORE_ACTOR_UNPROVEN, /* a session whose step-up is over */
    STORE_FULL,           /* as many as there may be */
    STORE_LIMITED,        /* too many changes a minute: the verb says for how long */
    STORE_UNAVAILABLE,    /* surely not done: Redis is away, refuses writes, answers nonsense */
    STORE_UNKNOWN,        /* no answer in time: it may have been done */
};

enum { STORE_ID_CHARS = 32 };

struct store;

struct store_settings {
    struct redis_target target;
    uint32_t timeout_ms;
    const char *prefix;   /* "chatelaine:"; at most REDIS_PREFIX_MAX_BYTES */
    int64_t min_replicas; /* changes are answered after WAIT for as many */
    int64_t audit_max;    /* events kept per account */
    /* What somebody may make; 0: no limit. The command line has none. */
    int64_t keys_max, device_keys_max; /* active ones of an account */
    int64_t changes_per_minute;        /* of a key or a user; ten times as many of all test keys, live keys, users */
    bool unsafe_redis;                 /* serve although Redis is not durable */
    /* Seals the records that are made, and judges those that are read: what somebody else altered is not found. It
     * outlives the store. NULL: for commands without a master key, which judge nothing and make no such record. */
    struct keyring *keyring;
    enum store_key_use {
        STORE_KEY_FITS,   /* the store is ready only where its records were made with these master keys */
        STORE_KEY_LOOKS,  /* the same, but nothing is noted in a new store: doctor */
        STORE_KEY_ROTATES /* any master key will do */
    } key_use;
};

/* ready runs whenever store_is_ready() changes. */
struct store *store_create(uv_loop_t *loop, const struct store_settings *settings, void (*ready)(void *arg), void *arg);
void store_close(struct store *store, void (*closed)(void *arg), void *arg);

/* A Redis whose memory is full is fit as well: what ends something still works.
 * All links up, with Sentinels also the session's lease, the store the one that is known, the schema version known and
 * not newer than ours, Redis durable (or unsafe_redis) and writable: looked at on each connection, and again every few
 * seconds. */
bool store_is_ready(const struct store *store);
/* Why not, one sentence for readyz, logs and doctor. Of a store that is ready: what it cannot do at present, or empty.
 */
const char *store_trouble(const struct store *store);
/* Not ready, for Redis still reads its data from disk. */
bool store_is_loading(const struct store *store);

/* An operator accepts what the present Redis lacks of what nodes have acknowledged, so that they go on with it.
 * STORE_NOT_FOUND: the store is empty. */
void store_accept_loss(struct store *store, void (*done)(void *arg, enum store_result result), void *arg);
/* The store waits for its first account; so does a node, for nobody but people can tell a new store from a lost one. */
bool store_is_empty(const struct store *store);

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
/* What is known of leases that another master has granted, which Sentinel has replaced but which may go on (rule 10).
 * It needs min_replicas of its replicas for each. */
enum store_takeover {
    STORE_TAKEOVER_ALL, /* min_replicas is all that there are: one of them is the new master, so the old one has no more
                         */
    STORE_TAKEOVER_MOST,  /* at least half: as soon as as many follow the new master the old one has too few left */
    STORE_TAKEOVER_FENCE, /* fewer: until replicas have been moved, and the old one's min-replicas-to-write stops it */
};
enum store_takeover store_takeover(int64_t replicas_known, int64_t min_replicas);
/* While a replica may be promoted that has not acknowledged a heartbeat: what the new master knows of leases
 * (lease_max) may be too little, so that none may be longer, and a node must leave a master that does not answer before
 * long. */
enum { STORE_LEASE_UNKNOWN_MAX_MS = 1000, STORE_TIMEOUT_UNKNOWN_MAX_MS = 1000 };
/* The least min-replicas-to-write under which a master that was replaced grants no leases (rule 10): of the replicas
 * that remain when one is promoted more than half, for Sentinel moves them to the new master one after the other. For
 * doctor: nodes look for 1 at least, so that one replica more does not stop them. */
int64_t store_fencing_replicas(const struct store_facts *facts);
/* The longest min-replicas-max-lag under which a master that was replaced stops to grant leases in time (rule 10). */
enum { STORE_REPLICA_LAG_MAX_S = 2 };
/* Without a connection it waits for one, up to the timeout; then STORE_UNAVAILABLE. Claims an empty store's schema. */
void store_examine(struct store *store,
                   void (*done)(void *arg, enum store_result result, const struct store_facts *facts), void *arg);

/* Whether records without a seal are taken for a while: those of an earlier version. */
bool store_takes_unsealed(const struct store *store);

/* For verbs that only tell whether it was done. */
typedef void store_done(void *arg, enum store_result result);

/* The credential of a change. It is checked when a request's head has come, and may die while the body is on
 * its way: verbs that make, approve, deny or revoke something check it again, in the same step as the change. */
enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_KEY, CREDENTIAL_SESSION };
struct session_limits;
struct credential {
    enum credential_kind kind; /* none: the command line, and the node itself, which need none */
    uint8_t digest[KEYRING_DIGEST_BYTES];
    const struct session_limits *limits; /* of a session; they outlive the call */
    bool needs_step_up;                  /* of a session: and a step-up that is not over */
};

/* Who did it, for the audit event that is written with each change, and what shows that he may. */
struct audit_source {
    struct text actor;      /* "key_…", "usr_…", or "operator" for the command line, "system" */
    struct text ip;         /* empty for the command line */
    struct text request_id; /* empty for the command line */
    struct credential credential;
};
