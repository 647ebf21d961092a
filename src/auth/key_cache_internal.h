/* A node's cache of keys: principals and, for a few seconds, digests that no key has. Memory only; the lease decides
 * when it may be used (lease/membership.h). An entry takes at most 96 bytes in all, nothing is allocated after
 * key_cache_create(), and unused pages cost nothing. A key is found by the inner hash of its digest (keyring_inner()),
 * which saves each check half of an HMAC, and dropped by its digest, which is all that an invalidation contains. A full
 * cache evicts keys that were little used lately, and a scan of keys that are used once does not evict those in use
 * (S3-FIFO: Yang et al., SOSP 2023). Unknown digests have a small table of their own, so that a flood of invented keys
 * evicts only other invented keys. */
#pragma once
#include "auth/shared_table.h"
#include "base/attr.h"
#include "core/bucket.h"
#include "core/key.h"
#include "core/keyring.h"

enum { KEY_CACHE_ENTRY_BYTES_MAX = 96, KEY_CACHE_SHARE_BYTES = 20, KEY_CACHE_AGE_MAX_S = CHATELAINE_CACHE_AGE_S };

struct key_cache;

/* As many entries as both bounds allow, at least 64. bytes_max covers everything that is allocated. */
struct key_cache *key_cache_create(size_t entries_max, size_t bytes_max);
void key_cache_destroy(struct key_cache *cache);

/* Prefetches what key_cache_find() will touch, in two steps, because the second reads what the first has fetched. */
void key_cache_prefetch_slot(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES]);
void key_cache_prefetch_entry(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES]);
/* ret_bucket: that of the key's digest. */
bool key_cache_find(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES], struct key_packed *ret_key,
                    unsigned *ret_bucket);
/* now_ns: clock_boot_ns(). */
bool key_cache_is_unknown(const struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
/* Adds or replaces a key. The digest must be that of the inner hash (keyring_outer()). A shared key stays shared if
 * nothing about it has changed. */
void key_cache_store(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES],
                     const uint8_t digest[KEY_DIGEST_BYTES], const struct key_packed *key);
/* From now on, keys can be shared, which takes KEY_CACHE_SHARE_BYTES more for each entry, beyond bytes_max. A key that
 * leaves the cache leaves the table, which outlives the cache. */
void key_cache_share_with(struct key_cache *cache, struct shared_table *table);
/* Shares a key that key_cache_find() has just found, if it is not shared. Call it only for one that is accepted now. */
void key_cache_share(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES], struct text secret,
                     unsigned account_bucket);
/* For a number that the table knows as an owner's: its readers used the key. */
void key_cache_count_use(struct key_cache *cache, uint32_t number);
/* The next key that readers used in the last KEY_CACHE_AGE_MAX_S / 2 and that leaves by age unless it is stored again
 * within an eighth of that. False: there is none until key_cache_age() says that time has passed. The cache is shared.
 */
bool key_cache_next_in_use(struct key_cache *cache, uint32_t *ret_number);
/* The shared key with that number, and whether that is its digest (or, once in 2^24, seems to be). */
void key_cache_recall_shared(const struct key_cache *cache, uint32_t number, uint8_t ret_inner[KEYRING_DIGEST_BYTES],
                             struct key_packed *ret_key);
bool key_cache_is_of(const struct key_cache *cache, uint32_t number, const uint8_t digest[KEY_DIGEST_BYTES]);
/* Notes for at most 5 s that no key has this digest. A cached key with it is dropped. */
void key_cache_store_unknown(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
/* Drops everything about the digest (and, once in 2^24, another key in its bucket). */
void key_cache_drop(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES]);
/* Drops keys stored KEY_CACHE_AGE_MAX_S ago or longer, and some that are half as old. Invalidations keep keys
 * correct; this bounds the damage if one never comes, because data was changed behind the nodes' back. Call it
 * before key_cache_find(), with the time; it seldom has anything to do, and then little at a time. True: entries
 * were dropped. */
bool key_cache_age(struct key_cache *cache, uint64_t now_ns);
/* Drops everything. Takes milliseconds for a million entries. */
void key_cache_clear(struct key_cache *cache);
/* Drops everything whose digest lies in one of so many partitions (store/partitions.h). Of a single one it is
 * key_cache_clear(). Of several it takes microseconds, and each eighth time of the same partition goes through all
 * entries: 10 ms for a million, and 1 µs more for each that was dropped and is still there. */
void key_cache_clear_partition(struct key_cache *cache, unsigned partition, unsigned partitions);
/* The keys cached now (without unknown digests), and how many there can be. Those of a cleared partition may count for
 * up to KEY_CACHE_AGE_MAX_S. */
size_t key_cache_count(const struct key_cache *cache);
size_t key_cache_capacity(const struct key_cache *cache);
/* The memory allocated in all. */
size_t key_cache_bytes(const struct key_cache *cache);
