/* Where a store is and how it is used. */
#pragma once
#include "core/key.h"
#include "core/keyring.h"
#include "redis/access.h"
#include "redis/resolver.h"
#include "redis/tls.h"

struct store_part;

struct store_settings {
    const struct store_part *const *parts; /* STORE_PARTS (store/store_parts.h) */
    struct redis_target target;
    struct redis_tls *tls; /* for a target with tls; outlives the store */
    /* In a cluster: finds the primary of this partition; outlives the store. Set by partitions_create(). */
    struct redis_resolver *resolver;
    uint32_t timeout_ms;
    const char *prefix;  /* "chatelaine:"; at most REDIS_PREFIX_MAX_BYTES */
    unsigned partitions; /* of the whole store: a power of two up to PARTITIONS_MAX (store/partitions.h) */
    unsigned partition;  /* the number of this one */
    /* The same Redis may hold a store with another number of partitions, one or several, under the same prefix. */
    bool may_lie_beside;
    int64_t min_replicas; /* WAIT for this many before a change is answered */
    int64_t audit_max;    /* kept per account in each class of events */
    /* Limits on what API callers may create; 0: none. Commands have none. */
    int64_t keys_max, device_keys_max; /* active keys per account */
    int64_t keys_per_day;              /* made per account, of either kind and mode */
    int64_t revoked_key_ms;            /* a revoked key is kept that long, then a tombstone; 0: for good */
    int64_t people_max;                /* users and invitations per account */
    int64_t changes_per_minute;        /* per key or user; ten times as many per account and kind of actor */
    bool unsafe_redis;                 /* serve even if Redis is not durable */
    bool durability_asserted;          /* where CONFIG GET is forbidden: every acknowledged write survives a takeover */
    /* Seals new records and verifies those that are read: a record with a wrong MAC is not found. Outlives the store.
     * NULL: for commands without a master key; they verify nothing and create no sealed record. */
    struct keyring *keyring;
    enum store_key_use {
        STORE_KEY_FITS,   /* ready only if the store's records were made with these master keys */
        STORE_KEY_LOOKS,  /* the same, but never notes the key in a new store: doctor */
        STORE_KEY_ROTATES /* any master key is accepted */
    } key_use;
    /* Called on the node that recorded it when a key changed without a request for it: it is revoked, or its end is now
     * ends_ms (0: none), as set at said_ms. why: a word for the log. NULL: not called. */
    void (*on_key_ended)(void *arg, const struct key_record *key, int64_t said_ms, const char *why);
    void *on_key_ended_arg;
};
