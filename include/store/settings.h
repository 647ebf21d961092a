/* Where a store is, and by which rules it is used. */
#pragma once
#include "core/keyring.h"
#include "redis/target.h"

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
