/* What a node remembers of keys: principals, and for a moment digests that no key has. Memory only: who may use it, and
 * when, is the lease's business (lease/membership.h). At most 96 bytes an entry with all that belongs to it, nothing
 * is allocated after key_cache_create(), and pages that were never used cost nothing.
 * A record is found by its digest's inner hash (keyring_inner()), which spares each check the other half of an HMAC,
 * and dropped by its digest, which is all that an invalidation tells. When it is full it gives up what was used least
 * of late, and a scan of keys that are used once does not push out those in use (S3-FIFO: Yang et al., SOSP 2023).
 * Unknown digests have a small table of their own, so that a flood of invented keys pushes out nothing but other
 * invented keys. */
#pragma once
#include "base/attr.h"
#include "core/key.h"
#include "core/keyring.h"

enum { KEY_CACHE_ENTRY_BYTES_MAX = 96, KEY_CACHE_AGE_MAX_S = 300 };

struct key_cache;

/* As many entries as both bounds allow, at least 64. bytes_max covers all that is allocated. */
struct key_cache *key_cache_create(size_t entries_max, size_t bytes_max);
void key_cache_destroy(struct key_cache *cache);

/* Has the processor fetch what key_cache_find() will touch. In two steps, as the second must see what the first has
 * brought. */
void key_cache_prefetch_slot(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES]);
void key_cache_prefetch_entry(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES]);
bool key_cache_find(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES], struct key_packed *ret_key);
/* now_ns: clock_boot_ns(). */
bool key_cache_is_unknown(const struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
/* Replaces what is there. The digest is the inner hash's (keyring_outer()). */
void key_cache_store(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES],
                     const uint8_t digest[KEY_DIGEST_BYTES], const struct key_packed *key);
/* No key has this digest: remembered for five seconds at most. A key that it had is dropped. */
void key_cache_store_unknown(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns);
/* Nothing is known of it afterwards. (Of one other in 2^32 neither.) */
void key_cache_drop(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES]);
/* Gives up what was stored KEY_CACHE_AGE_MAX_S ago or longer, and some of what is half as old: invalidations are what
 * keeps records right, and this bounds what an invalidation that can't come costs (data that were changed behind the
 * nodes' back). Call it before key_cache_find(), with the time; it does nothing most of the time, and little else.
 * True: there are fewer entries than before. */
bool key_cache_age(struct key_cache *cache, uint64_t now_ns);
/* Nothing is known of anything. Takes a moment (milliseconds for a million entries). */
void key_cache_clear(struct key_cache *cache);
/* Records kept now (unknown digests not counted), and how many there can be. */
size_t key_cache_count(const struct key_cache *cache);
size_t key_cache_capacity(const struct key_cache *cache);
/* All that was allocated. */
size_t key_cache_bytes(const struct key_cache *cache);
