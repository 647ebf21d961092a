#include "key_cache_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "key_shares_internal.h"
#include "unknown_keys_internal.h"

#include <stdlib.h>
#include <string.h>

/* Half of a digest or inner hash tells keys apart as well as the whole. Both are made under a secret key, so nobody can
 * search for two that are half alike, and 128 bits do not collide by chance. Their bytes are uniform, so they also
 * serve as hashes; only a digest's last byte, its bucket, is the same for all keys of an account. Of digests the second
 * half is kept, because it ends with the bucket. */
enum { KEPT_BYTES = 16, AT_HOME = 0, AT_TAG = 4, AT_GHOST = 8, AT_FINGERPRINT = 12 };

enum { USES_MAX = 3 };
enum { ENTRIES_MIN = 64, ENTRIES_LIMIT = 1 << 30, SLOTS_PER_ENTRY = 2, SLOTS_PER_CHAIN = 4 };
/* The paper's figures: a tenth of the entries are on trial, and more than one use promotes an entry. */
enum { TRIAL_SHARE = 10, TRIAL_USES = 1 };
/* An eviction that has spared this many entries in use takes the next one anyway, because the event loop is waiting. */
enum { SPARED_MAX = 32 };
/* The index grows with its content, so that few keys stay within few cache lines and pages. It doubles up to this many
 * slots (refilling takes some milliseconds of the event loop), then grows to its full size at once. */
enum { SLOTS_FIRST = 1024, SLOTS_DOUBLED_MAX = 128 * 1024 };

/* A clock hand goes round all entries, one step per STEP_NS, and removes those that it has met before. So they leave
 * one by one; if all expired together, every key in use would be read from Redis at the same moment. */
static const uint64_t ROUND_NS = KEY_CACHE_AGE_MAX_S * UINT64_C(500000000), STEP_NS = UINT64_C(100000000);
/* A scout goes round that far ahead of the hand, and names entries that the hand would remove and that are in use. */
static const uint64_t LEAD_NS = KEY_CACHE_AGE_MAX_S * UINT64_C(62500000);

static const uint32_t NO_ENTRY = UINT32_MAX;

/* Entries of a cleared partition stay until the hand meets them or they are stored again. They are not found, because
 * their generation is an earlier one: removing each at once would take the event loop 0.1 to 0.5 s for a million. */
enum { GENERATION_MAX = 7 };

enum { CLAIMED_MAX = 1000 };

struct cache_entry {
    uint8_t inner[KEPT_BYTES];
    uint32_t digest_hash; /* pieces of its digest; the lowest byte is the bucket */
    struct key_packed key;
    uint8_t in_main : 1;
    uint8_t was_met : 1; /* met by the hand */
    uint8_t is_free : 1;
    uint8_t uses : 2;       /* since it entered its queue, less one per round spared; at most USES_MAX */
    uint8_t generation : 3; /* its bucket's when it was stored; at most GENERATION_MAX */
    uint32_t older, newer;  /* in its queue; a free entry's `newer` is the next free one */
    uint32_t chained;       /* number + 1 of the next one in its chain, or 0 */
};

struct queue {
    uint32_t oldest, newest;
    size_t count;
};

struct key_cache {
    struct cache_entry *entries;
    /* Open addressing with linear probing and no tombstones. A slot is 0, or an entry's number + 1 in the bits of
     * number_mask and a piece of its inner hash above them, which avoids most reads of other entries. */
    uint32_t *slots;
    uint32_t *chains; /* number + 1 of the first entry, by digest_hash: how a drop finds its entry */
    uint16_t *ghosts; /* one fingerprint per place, of entries that left `trial` recently; 0: none */
    struct unknown_key *unknown;
    uint8_t generation[BUCKETS]; /* times that it was cleared since remove_stale() */
    uint32_t number_mask;
    uint32_t first_free;
    size_t capacity, slots_max;
    size_t slot_count; /* that are in use now */
    size_t touched;    /* entries from this one on were never used */
    size_t hand;       /* the next entry that it visits */
    size_t scout;      /* the next one that key_cache_next_in_use() looks at */
    size_t scout_to;   /* where it may stop */
    bool scout_is_due; /* it has not come there yet; if it is there, it goes all the way round */
    bool is_in_lead;   /* it is in the round that the hand has not begun */
    uint64_t round_began_ns, step_due_ns;
    struct queue trial, main;
    size_t bytes;
    struct key_shares *shares; /* NULL: the cache is not shared */
};

#define ENTRY_BYTES                                                                                           \
    (sizeof(struct cache_entry) + SLOTS_PER_ENTRY * (sizeof(uint32_t) + sizeof(uint32_t) / SLOTS_PER_CHAIN) + \
     sizeof(uint16_t))
#define FIXED_BYTES (sizeof(struct key_cache) + UNKNOWN_KEYS_SLOTS * sizeof(struct unknown_key))

_Static_assert(ENTRY_BYTES <= (size_t)KEY_CACHE_ENTRY_BYTES_MAX && (int)KEY_SHARE_BYTES == (int)KEY_CACHE_SHARE_BYTES,
               "an entry and what belongs to it keep the header's promises");
_Static_assert((int)KEPT_BYTES + (int)KEY_SHARE_NOTE_BYTES == (int)KEYRING_DIGEST_BYTES,
               "what is shared has the rest of its inner hash in its note");

static uint32_t load32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Spreads hashes evenly over 0 to count - 1, without a division. */
static size_t scale(uint32_t hash, size_t count)
{
    return (size_t)((uint64_t)hash * count >> 32);
}

static bool is_kept(const uint8_t kept[KEPT_BYTES], const uint8_t *whole)
{
    return secure_equal((struct text){(const char *)kept, KEPT_BYTES}, (struct text){(const char *)whole, KEPT_BYTES});
}

/* Create and destroy */

static void *take(struct key_cache *cache, size_t count, size_t each)
{
    cache->bytes += count * each;
    return mem_alloc_large(count * each);
}

static size_t capacity_within(size_t entries_max, size_t bytes_max)
{
    size_t capacity = bytes_max > FIXED_BYTES ? (bytes_max - FIXED_BYTES) / ENTRY_BYTES : 0;
    if (capacity > entries_max)
        capacity = entries_max;
    if (capacity > ENTRIES_LIMIT)
        capacity = ENTRIES_LIMIT;
    return capacity < ENTRIES_MIN ? ENTRIES_MIN : capacity;
}

static void set_empty(struct key_cache *cache)
{
    cache->trial = cache->main = (struct queue){NO_ENTRY, NO_ENTRY, 0};
    cache->first_free = NO_ENTRY;
    cache->touched = cache->hand = cache->scout = cache->scout_to = 0;
    cache->slot_count = cache->slots_max < SLOTS_FIRST ? cache->slots_max : SLOTS_FIRST;
}

struct key_cache *key_cache_create(size_t entries_max, size_t bytes_max)
{
    struct key_cache *cache = mem_alloc(sizeof *cache);
    cache->bytes = sizeof *cache;
    cache->capacity = capacity_within(entries_max, bytes_max);
    cache->slots_max = cache->capacity * SLOTS_PER_ENTRY;
    while (cache->number_mask < cache->capacity)
        cache->number_mask = cache->number_mask << 1 | 1;
    cache->entries = take(cache, cache->capacity, sizeof *cache->entries);
    cache->slots = take(cache, cache->slots_max, sizeof *cache->slots);
    cache->chains = take(cache, cache->slots_max / SLOTS_PER_CHAIN, sizeof *cache->chains);
    cache->ghosts = take(cache, cache->capacity, sizeof *cache->ghosts);
    cache->unknown = take(cache, UNKNOWN_KEYS_SLOTS, sizeof *cache->unknown);
    set_empty(cache);
    return cache;
}

void key_cache_destroy(struct key_cache *cache)
{
    if (!cache)
        return;
    free(cache->entries);
    free(cache->slots);
    free(cache->chains);
    free(cache->ghosts);
    free(cache->unknown);
    key_shares_destroy(cache->shares);
    free(cache);
}

static uint32_t number_of(const struct key_cache *cache, const struct cache_entry *entry)
{
    return (uint32_t)(entry - cache->entries);
}

/* The index */

static size_t home_of(const struct key_cache *cache, const uint8_t *inner)
{
    return scale(load32(inner + AT_HOME), cache->slot_count);
}

static uint32_t tag_of(const struct key_cache *cache, const uint8_t *inner)
{
    return load32(inner + AT_TAG) & ~cache->number_mask;
}

static size_t slot_after(const struct key_cache *cache, size_t at)
{
    return at + 1 == cache->slot_count ? 0 : at + 1;
}

static uint32_t entry_number(const struct key_cache *cache, uint32_t slot)
{
    return (slot & cache->number_mask) - 1;
}

static struct cache_entry *entry_at(const struct key_cache *cache, size_t at)
{
    return &cache->entries[entry_number(cache, cache->slots[at])];
}

/* The position of that inner hash's slot, or of the empty one where it belongs. */
static size_t find_slot(const struct key_cache *cache, const uint8_t *inner)
{
    const uint32_t tag = tag_of(cache, inner);
    size_t at = home_of(cache, inner);
    for (uint32_t slot; (slot = cache->slots[at]) != 0; at = slot_after(cache, at))
        if ((slot & ~cache->number_mask) == tag && is_kept(entry_at(cache, at)->inner, inner))
            break;
    return at;
}

/* Empties a slot and closes the gap: entries that follow and may stand there move up, so that no search ends too early.
 * The distances are unsigned: one that wraps around the table's end is huge, and thus correctly the longer one. */
static void empty_slot(struct key_cache *cache, size_t hole)
{
    for (size_t at = slot_after(cache, hole); cache->slots[at]; at = slot_after(cache, at)) {
        const size_t home = home_of(cache, entry_at(cache, at)->inner);
        if (at - home < at - hole)
            continue;
        cache->slots[hole] = cache->slots[at];
        hole = at;
    }
    cache->slots[hole] = 0;
}

/* The chains: entries by their digests */

/* The bucket is in the lowest byte, because the upper bits pick the chain. */
static uint32_t digest_hash_of(const uint8_t *digest)
{
    return (load32(digest + AT_HOME) & ~(uint32_t)(BUCKETS - 1)) | bucket_of_digest(digest);
}

static unsigned bucket_of(const struct cache_entry *entry)
{
    return entry->digest_hash & (BUCKETS - 1);
}

static bool is_current(const struct key_cache *cache, const struct cache_entry *entry)
{
    return entry->generation == cache->generation[bucket_of(entry)];
}

static uint32_t *chain_of(const struct key_cache *cache, uint32_t digest_hash)
{
    return &cache->chains[scale(digest_hash, cache->slot_count / SLOTS_PER_CHAIN)];
}

static void chain(struct key_cache *cache, struct cache_entry *entry)
{
    uint32_t *first = chain_of(cache, entry->digest_hash);
    entry->chained = *first;
    *first = number_of(cache, entry) + 1;
}

static void unchain(struct key_cache *cache, const struct cache_entry *entry)
{
    const uint32_t number = number_of(cache, entry) + 1;
    uint32_t *link = chain_of(cache, entry->digest_hash);
    while (*link != number)
        link = &cache->entries[*link - 1].chained;
    *link = entry->chained;
}

/* The two queues: an entry is in one of them, or free */

static struct queue *queue_of(struct key_cache *cache, const struct cache_entry *entry)
{
    return entry->in_main ? &cache->main : &cache->trial;
}

static void enqueue(struct key_cache *cache, struct cache_entry *entry, bool in_main)
{
    const uint32_t number = number_of(cache, entry);
    entry->in_main = in_main;
    struct queue *queue = queue_of(cache, entry);
    entry->older = queue->newest;
    entry->newer = NO_ENTRY;
    if (queue->newest == NO_ENTRY)
        queue->oldest = number;
    else
        cache->entries[queue->newest].newer = number;
    queue->newest = number;
    queue->count++;
}

static void dequeue(struct key_cache *cache, struct cache_entry *entry)
{
    struct queue *queue = queue_of(cache, entry);
    INVARIANT(queue->count > 0);
    if (entry->older == NO_ENTRY)
        queue->oldest = entry->newer;
    else
        cache->entries[entry->older].newer = entry->newer;
    if (entry->newer == NO_ENTRY)
        queue->newest = entry->older;
    else
        cache->entries[entry->newer].older = entry->older;
    queue->count--;
}

static void unshare(struct key_cache *cache, const struct cache_entry *entry)
{
    if (cache->shares)
        key_shares_remove(cache->shares, number_of(cache, entry));
}

static void unshare_bucket(struct key_cache *cache, unsigned bucket)
{
    if (cache->shares)
        key_shares_clear_bucket(cache->shares, bucket);
}

static void remove_entry(struct key_cache *cache, struct cache_entry *entry)
{
    const size_t at = find_slot(cache, entry->inner);
    REQUIRE(!entry->is_free);
    INVARIANT(cache->slots[at] && entry_at(cache, at) == entry);
    unshare(cache, entry);
    empty_slot(cache, at);
    unchain(cache, entry);
    dequeue(cache, entry);
    entry->is_free = true;
    entry->newer = cache->first_free;
    cache->first_free = number_of(cache, entry);
}

/* Replacement */

static uint16_t *ghost_place(struct key_cache *cache, const uint8_t *inner)
{
    return &cache->ghosts[scale(load32(inner + AT_GHOST), cache->capacity)];
}

static uint16_t fingerprint_of(const uint8_t *inner)
{
    return (uint16_t)(load32(inner + AT_FINGERPRINT) | 1);
}

static bool take_ghost(struct key_cache *cache, const uint8_t *inner)
{
    uint16_t *place = ghost_place(cache, inner);
    if (*place != fingerprint_of(inner))
        return false;
    *place = 0;
    return true;
}

static void count_use(struct cache_entry *entry)
{
    if (entry->uses < USES_MAX)
        entry->uses++;
}

/* The oldest entry gets another round if it was used enough. However often readers used it, they count once. */
static bool spare(struct key_cache *cache, struct cache_entry *oldest)
{
    if (cache->shares && key_shares_take_use(cache->shares, number_of(cache, oldest), KEY_SHARES_EVICTION))
        count_use(oldest);
    if (oldest->uses <= (oldest->in_main ? 0 : TRIAL_USES))
        return false;
    oldest->uses = oldest->in_main ? (oldest->uses - 1) & USES_MAX : 0;
    dequeue(cache, oldest);
    enqueue(cache, oldest, true);
    return true;
}

static struct cache_entry *oldest_to_examine(struct key_cache *cache)
{
    const struct queue *queue = cache->trial.count * TRIAL_SHARE >= cache->capacity ? &cache->trial : &cache->main;
    return &cache->entries[queue->oldest];
}

/* Only for a full cache, in which the queue that oldest_to_examine() picks is never empty. */
static void evict(struct key_cache *cache)
{
    struct cache_entry *entry = oldest_to_examine(cache);
    for (int spared = 0; spared < SPARED_MAX && spare(cache, entry); spared++)
        entry = oldest_to_examine(cache);
    if (!entry->in_main)
        *ghost_place(cache, entry->inner) = fingerprint_of(entry->inner);
    remove_entry(cache, entry);
}

static struct cache_entry *take_free_entry(struct key_cache *cache)
{
    if (cache->first_free == NO_ENTRY) {
        INVARIANT(cache->touched < cache->capacity);
        return &cache->entries[cache->touched++];
    }
    struct cache_entry *entry = &cache->entries[cache->first_free];
    INVARIANT(entry->is_free);
    cache->first_free = entry->newer;
    return entry;
}

/* Growing */

static void point_to(struct key_cache *cache, struct cache_entry *entry)
{
    cache->slots[find_slot(cache, entry->inner)] = tag_of(cache, entry->inner) | (number_of(cache, entry) + 1);
    chain(cache, entry);
}

static void point_to_all(struct key_cache *cache, const struct queue *queue)
{
    for (uint32_t number = queue->oldest; number != NO_ENTRY; number = cache->entries[number].newer)
        point_to(cache, &cache->entries[number]);
}

static void clear_index(struct key_cache *cache)
{
    memset(cache->slots, 0, cache->slot_count * sizeof *cache->slots);
    memset(cache->chains, 0, cache->slot_count / SLOTS_PER_CHAIN * sizeof *cache->chains);
}

static void grow_index(struct key_cache *cache)
{
    clear_index(cache);
    cache->slot_count *= 2;
    if (cache->slot_count > SLOTS_DOUBLED_MAX || cache->slot_count > cache->slots_max)
        cache->slot_count = cache->slots_max;
    point_to_all(cache, &cache->trial);
    point_to_all(cache, &cache->main);
}

/* Entries */

static struct cache_entry *add(struct key_cache *cache, const uint8_t *inner, const uint8_t *digest)
{
    if (key_cache_count(cache) == cache->capacity)
        evict(cache);
    else if ((key_cache_count(cache) + 1) * SLOTS_PER_ENTRY > cache->slot_count)
        grow_index(cache);
    struct cache_entry *entry = take_free_entry(cache);
    if (cache->shares)
        key_shares_forget(cache->shares, number_of(cache, entry));
    memcpy(entry->inner, inner, KEPT_BYTES);
    entry->digest_hash = digest_hash_of(digest);
    entry->uses = 0;
    entry->is_free = false;
    enqueue(cache, entry, take_ghost(cache, inner));
    point_to(cache, entry);
    return entry;
}

static bool has_records(const struct key_cache *cache, const uint8_t *digest)
{
    for (size_t i = 0; i < cache->touched; i++)
        if (!cache->entries[i].is_free && cache->entries[i].digest_hash == digest_hash_of(digest))
            return true;
    return false;
}

static void forget_records(struct key_cache *cache, const uint8_t *digest)
{
    const uint32_t hash = digest_hash_of(digest);
    for (uint32_t next, number = *chain_of(cache, hash); number; number = next) {
        struct cache_entry *entry = &cache->entries[number - 1];
        next = entry->chained;
        if (entry->digest_hash == hash)
            remove_entry(cache, entry);
    }
    /* Nothing is left of a key that was revoked. In a large cache it takes too long, even for a test. */
    ALL_ENSURE(cache->touched > CLAIMED_MAX || !has_records(cache, digest));
}

/* The hand */

static void move_hand(struct key_cache *cache, size_t to)
{
    REQUIRE(to <= cache->touched);
    for (; cache->hand < to; cache->hand++) {
        struct cache_entry *entry = &cache->entries[cache->hand];
        if (entry->is_free)
            continue;
        if (entry->was_met || !is_current(cache, entry))
            remove_entry(cache, entry);
        entry->was_met = true;
    }
}

static size_t place_in_round(const struct key_cache *cache, uint64_t passed_ns)
{
    return (size_t)((double)cache->touched * (double)passed_ns / (double)ROUND_NS);
}

static void send_scout(struct key_cache *cache, uint64_t passed_ns)
{
    const bool was_in_lead = cache->is_in_lead;
    const size_t from = cache->scout_to;
    cache->is_in_lead = passed_ns + LEAD_NS >= ROUND_NS;
    cache->scout_to = place_in_round(cache, passed_ns + LEAD_NS - (cache->is_in_lead ? ROUND_NS : 0));
    cache->scout_is_due |= cache->scout_to != from || (cache->is_in_lead && !was_in_lead);
}

/* The functions in the header */

void key_cache_prefetch_slot(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES])
{
    mem_prefetch(&cache->slots[home_of(cache, inner)], sizeof *cache->slots);
}

/* Prefetches the first entry that may be the key's; nearly always it is. */
void key_cache_prefetch_entry(const struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES])
{
    const uint32_t tag = tag_of(cache, inner);
    for (size_t at = home_of(cache, inner); cache->slots[at]; at = slot_after(cache, at)) {
        if ((cache->slots[at] & ~cache->number_mask) != tag)
            continue;
        mem_prefetch(entry_at(cache, at), sizeof(struct cache_entry));
        return;
    }
}

bool key_cache_find(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES], struct key_packed *ret_key,
                    unsigned *ret_bucket)
{
    const size_t at = find_slot(cache, inner);
    if (!cache->slots[at])
        return false;
    struct cache_entry *entry = entry_at(cache, at);
    if (!is_current(cache, entry))
        return false;
    count_use(entry);
    *ret_key = entry->key;
    *ret_bucket = bucket_of(entry);
    return true;
}

bool key_cache_is_unknown(const struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns)
{
    return unknown_keys_include(cache->unknown, digest, now_ns);
}

void key_cache_store(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES],
                     const uint8_t digest[KEY_DIGEST_BYTES], const struct key_packed *key)
{
    unknown_keys_forget(cache->unknown, digest);
    const size_t at = find_slot(cache, inner);
    struct cache_entry *entry = cache->slots[at] ? entry_at(cache, at) : add(cache, inner, digest);
    REQUIRE(entry->digest_hash == digest_hash_of(digest)); /* otherwise no invalidation would find it */
    if (!is_current(cache, entry) || memcmp(&entry->key, key, sizeof *key) != 0)
        unshare(cache, entry);
    entry->key = *key;
    entry->was_met = false;
    const unsigned generation = cache->generation[bucket_of(entry)];
    entry->generation = generation & GENERATION_MAX;
    ENSURE(is_current(cache, entry) && !entry->is_free);
}

void key_cache_share_with(struct key_cache *cache, struct shared_table *table)
{
    cache->shares = key_shares_create(table, cache->capacity);
    cache->bytes += cache->capacity * KEY_SHARE_BYTES;
}

void key_cache_share(struct key_cache *cache, const uint8_t inner[KEYRING_DIGEST_BYTES], struct text secret,
                     unsigned account_bucket)
{
    const uint32_t number = entry_number(cache, cache->slots[find_slot(cache, inner)]);
    ALL_REQUIRE(number < cache->touched && is_current(cache, &cache->entries[number]));
    key_shares_put(cache->shares, number, secret, account_bucket, &cache->entries[number].key, inner + KEPT_BYTES);
}

void key_cache_count_use(struct key_cache *cache, uint32_t number)
{
    key_shares_count_use(cache->shares, number);
}

/* Whether the hand will remove it, although readers use it. */
static bool is_to_be_refreshed(struct key_cache *cache, uint32_t number)
{
    const struct cache_entry *entry = &cache->entries[number];
    return key_shares_take_use(cache->shares, number, KEY_SHARES_REFRESH) && entry->was_met && is_current(cache, entry);
}

bool key_cache_next_in_use(struct key_cache *cache, uint32_t *ret_number)
{
    bool is_found = false;
    while (cache->scout_is_due && !is_found) {
        if (cache->scout < cache->touched) {
            *ret_number = (uint32_t)cache->scout++;
            is_found = is_to_be_refreshed(cache, *ret_number);
        } else {
            cache->scout = 0;
        }
        cache->scout_is_due = cache->scout != cache->scout_to;
    }
    return is_found;
}

void key_cache_recall_shared(const struct key_cache *cache, uint32_t number, uint8_t ret_inner[KEYRING_DIGEST_BYTES],
                             struct key_packed *ret_key)
{
    memcpy(ret_inner, cache->entries[number].inner, KEPT_BYTES);
    key_shares_note(cache->shares, number, ret_inner + KEPT_BYTES);
    *ret_key = cache->entries[number].key;
}

bool key_cache_is_of(const struct key_cache *cache, uint32_t number, const uint8_t digest[KEY_DIGEST_BYTES])
{
    return cache->entries[number].digest_hash == digest_hash_of(digest);
}

void key_cache_store_unknown(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES], uint64_t now_ns)
{
    forget_records(cache, digest);
    unknown_keys_add(cache->unknown, digest, now_ns);
}

void key_cache_drop(struct key_cache *cache, const uint8_t digest[KEY_DIGEST_BYTES])
{
    forget_records(cache, digest);
    unknown_keys_forget(cache->unknown, digest);
}

/* Ghosts stay: they decide which queue an entry enters, not what it contains. */
void key_cache_clear(struct key_cache *cache)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        unshare_bucket(cache, bucket);
    if (cache->touched)
        clear_index(cache);
    unknown_keys_clear(cache->unknown);
    memset(cache->generation, 0, sizeof cache->generation);
    set_empty(cache);
    ENSURE(key_cache_count(cache) == 0);
}

static void remove_stale(struct key_cache *cache)
{
    for (size_t i = 0; i < cache->touched; i++) {
        struct cache_entry *entry = &cache->entries[i];
        if (!entry->is_free && !is_current(cache, entry))
            remove_entry(cache, entry);
        entry->generation = 0;
    }
    memset(cache->generation, 0, sizeof cache->generation);
}

static void clear_bucket(struct key_cache *cache, unsigned bucket)
{
    if (cache->generation[bucket] == GENERATION_MAX)
        remove_stale(cache);
    cache->generation[bucket]++;
    ENSURE(cache->generation[bucket] <= GENERATION_MAX);
    unshare_bucket(cache, bucket);
}

void key_cache_clear_partition(struct key_cache *cache, unsigned partition, unsigned partitions)
{
    REQUIRE(partition < partitions && BUCKETS % partitions == 0);
    if (partitions == 1) {
        key_cache_clear(cache);
        return;
    }
    for (unsigned bucket = partition; bucket < BUCKETS; bucket += partitions)
        clear_bucket(cache, bucket);
    unknown_keys_clear_partition(cache->unknown, partition, partitions);
}

bool key_cache_age(struct key_cache *cache, uint64_t now_ns)
{
    const size_t count = key_cache_count(cache);
    if (now_ns < cache->step_due_ns)
        return false;
    /* Not used for a whole round: the hand has not moved, so entries may be too old. */
    if (now_ns - cache->step_due_ns >= ROUND_NS) {
        key_cache_clear(cache);
        cache->round_began_ns = now_ns;
    }
    cache->step_due_ns = now_ns + STEP_NS;
    while (now_ns - cache->round_began_ns >= ROUND_NS) { /* twice, if it was not used for nearly a round */
        move_hand(cache, cache->touched);
        cache->hand = 0;
        cache->round_began_ns += ROUND_NS;
    }
    move_hand(cache, place_in_round(cache, now_ns - cache->round_began_ns));
    send_scout(cache, now_ns - cache->round_began_ns);
    return key_cache_count(cache) != count;
}

size_t key_cache_count(const struct key_cache *cache)
{
    return cache->trial.count + cache->main.count;
}

size_t key_cache_capacity(const struct key_cache *cache)
{
    return cache->capacity;
}

size_t key_cache_bytes(const struct key_cache *cache)
{
    return cache->bytes;
}
