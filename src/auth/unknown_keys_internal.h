/* Digests that no key has, for a few seconds, so that a flood of invented keys costs no reads of the store. Part of the
 * cache (key_cache_internal.h), but in a table of its own: invented keys push out only other invented keys. */
#pragma once
#include "core/key.h"

enum { UNKNOWN_KEYS_SETS = 1024, UNKNOWN_KEYS_WAYS = 4, UNKNOWN_KEYS_SLOTS = UNKNOWN_KEYS_SETS * UNKNOWN_KEYS_WAYS };
enum { UNKNOWN_KEY_BYTES = 16 };

/* expires_ns 0: the place is free. */
struct unknown_key {
    uint8_t digest_end[UNKNOWN_KEY_BYTES];
    uint64_t expires_ns;
};

/* The table is an array of UNKNOWN_KEYS_SLOTS, zeroed at first. */
bool unknown_keys_include(const struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
void unknown_keys_add(struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
void unknown_keys_forget(struct unknown_key *table, const uint8_t digest[KEY_DIGEST_BYTES]);
void unknown_keys_clear(struct unknown_key *table);
/* Those whose digest lies in one of so many partitions, a power of two. */
void unknown_keys_clear_partition(struct unknown_key *table, unsigned partition, unsigned partitions);
