#include "usage_table_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/turn.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 256, SLOTS_PER_ENTRY = 2, DAY_MS = 86400000 };
/* A slot's upper bits are part of the hash. They avoid reads of other entries, each of which may miss the CPU's
 * caches. */
enum { NUMBER_BITS = 17, NUMBER_MASK = (1 << NUMBER_BITS) - 1 };

_Static_assert((int)USAGE_TABLE_MAX <= (int)NUMBER_MASK, "an entry's number + 1 fits");
_Static_assert(sizeof(struct usage_entry) == MEM_LINE_BYTES, "as its header says");

/* An id's 80 random bits suffice to tell keys apart, without its first ten characters. */
enum { TAIL_CHARS = 16 };
/* How much more an account's first key in a batch costs Redis than a further one, which takes 2 µs (measured). */
enum { PLACE_COST = 8, PLACE_BITS = 4096 };

void usage_table_init(struct usage_table *table, size_t most)
{
    REQUIRE(most >= CAPACITY_FIRST && most <= USAGE_TABLE_MAX && (most & (most - 1)) == 0);
    *table = (struct usage_table){.capacity = CAPACITY_FIRST, .most = most};
    table->entries = mem_alloc_lines(most);
    table->slots = mem_alloc(CAPACITY_FIRST * SLOTS_PER_ENTRY * sizeof *table->slots);
}

void usage_table_finish(struct usage_table *table)
{
    free(table->entries);
    free(table->slots);
}

static const char *tail_of(const char key[ULID_TEXT_CHARS])
{
    return key + (ULID_TEXT_CHARS - TAIL_CHARS);
}

/* Clients cannot choose those characters, and the last ones suffice. Ids of one millisecond are consecutive, so only
 * the very last characters differ. Read big-endian, they are the low bits, which the product spreads upwards. */
static uint64_t hash_of(const char key[ULID_TEXT_CHARS])
{
    uint64_t last;
    memcpy(&last, key + (ULID_TEXT_CHARS - sizeof last), sizeof last);
    return be64toh(last) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)hash & ~(uint32_t)NUMBER_MASK;
}

static size_t index_of(uint32_t slot)
{
    return (slot & NUMBER_MASK) - 1;
}

static int64_t last_used(const struct usage_entry *entry)
{
    return (int64_t)entry->last_used_ms;
}

static void set_last_used(struct usage_entry *entry, int64_t wall_ms)
{
    entry->last_used_ms = (uint64_t)wall_ms & ((UINT64_C(1) << USAGE_TIME_BITS) - 1);
}

static bool is_same_day(int64_t a_ms, int64_t b_ms)
{
    return a_ms / DAY_MS == b_ms / DAY_MS;
}

static bool is_same(const struct usage_entry *entry, const char key[ULID_TEXT_CHARS], int64_t wall_ms)
{
    return memcmp(tail_of(entry->key), tail_of(key), TAIL_CHARS) == 0 && is_same_day(last_used(entry), wall_ms);
}

static size_t slot_mask(const struct usage_table *table)
{
    return table->capacity * SLOTS_PER_ENTRY - 1;
}

static size_t home_of(const struct usage_table *table, uint64_t hash)
{
    return (size_t)(hash >> 32) & slot_mask(table);
}

/* The slot of that key and day, or the empty one where it belongs. */
static uint32_t *find_slot(const struct usage_table *table, const char key[ULID_TEXT_CHARS], int64_t wall_ms)
{
    const uint64_t hash = hash_of(key);
    size_t at = home_of(table, hash);
    for (uint32_t slot; (slot = table->slots[at]) != 0; at = (at + 1) & slot_mask(table))
        if ((slot & ~(uint32_t)NUMBER_MASK) == tag_of(hash) && is_same(&table->entries[index_of(slot)], key, wall_ms))
            break;
    return &table->slots[at];
}

static uint32_t slot_of(const char key[ULID_TEXT_CHARS], size_t index)
{
    return tag_of(hash_of(key)) | (uint32_t)(index + 1);
}

static void grow(struct usage_table *table)
{
    table->capacity *= 2;
    free(table->slots);
    table->slots = mem_alloc(table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++) {
        const struct usage_entry *entry = &table->entries[i];
        *find_slot(table, entry->key, last_used(entry)) = slot_of(entry->key, i);
    }
}

/* The entry has left the CPU's caches, because many others were written since it was last used. So it is only written,
 * not read, and one for some checks ahead is prefetched. */
static void add_new(struct usage_table *table, uint32_t *slot, const struct key_principal *key, uint32_t uses,
                    int64_t wall_ms)
{
    ALL_REQUIRE(*slot == 0 && table->count < table->capacity);
    const size_t index = table->count++;
    struct usage_entry *entry = &table->entries[index];
    *entry = (struct usage_entry){
        .uses = uses,
        .is_device = key->kind == KEY_DEVICE,
        .is_live = key->mode == MODE_LIVE,
    };
    set_last_used(entry, wall_ms);
    memcpy(entry->account, id_chars(&key->account), ULID_TEXT_CHARS);
    memcpy(entry->key, id_chars(&key->id), ULID_TEXT_CHARS);
    *slot = slot_of(id_chars(&key->id), index);
    if (index + TURN_SLICE < table->most)
        mem_prefetch(entry + TURN_SLICE, sizeof *entry);
}

bool usage_table_add(struct usage_table *table, const struct key_principal *key, uint32_t uses, int64_t wall_ms)
{
    REQUIRE(key->id.text[0] && key->account.text[0]);
    uint32_t *slot = find_slot(table, id_chars(&key->id), wall_ms);
    if (*slot) {
        struct usage_entry *entry = &table->entries[index_of(*slot)];
        entry->uses += uses < UINT32_MAX - entry->uses ? uses : UINT32_MAX - entry->uses;
        if (last_used(entry) < wall_ms)
            set_last_used(entry, wall_ms);
        return true;
    }
    if (table->count == table->capacity) {
        if (table->capacity == table->most)
            return false;
        grow(table);
        slot = find_slot(table, id_chars(&key->id), wall_ms);
    }
    add_new(table, slot, key, uses, wall_ms);
    return true;
}

void usage_table_prefetch_slot(const struct usage_table *table, const struct id *key)
{
    mem_prefetch(&table->slots[home_of(table, hash_of(id_chars(key)))], sizeof *table->slots);
}

/* Prefetches the first entry that may be the key's; nearly always it is. */
void usage_table_prefetch_entry(const struct usage_table *table, const struct id *key)
{
    const uint64_t hash = hash_of(id_chars(key));
    for (size_t at = home_of(table, hash); table->slots[at]; at = (at + 1) & slot_mask(table)) {
        if ((table->slots[at] & ~(uint32_t)NUMBER_MASK) != tag_of(hash))
            continue;
        mem_prefetch(&table->entries[index_of(table->slots[at])], sizeof *table->entries);
        return;
    }
}

/* Whether the entry is the first of its account and mode. A hash collision makes it count as a further one; then the
 * batch is a little larger. */
static bool is_new_place(uint64_t seen[PLACE_BITS / 64], const struct usage_entry *entry)
{
    const uint64_t hash = (hash_of(entry->account) >> 32) + entry->is_live;
    uint64_t *word = &seen[hash % PLACE_BITS / 64];
    const uint64_t bit = UINT64_C(1) << hash % 64;
    const bool is_new = !(*word & bit);
    *word |= bit;
    return is_new;
}

size_t usage_table_batch(const struct usage_table *table, size_t first, size_t most)
{
    uint64_t seen[PLACE_BITS / 64] = {0};
    const struct usage_entry *entries = table->entries + first;
    size_t n, cost = 0;
    for (n = 0; first + n < table->count && is_same_day(last_used(&entries[n]), last_used(entries)); n++) {
        cost += is_new_place(seen, &entries[n]) && n > 0 ? 1 + PLACE_COST : 1;
        if (cost > most)
            break;
    }
    return n;
}

void usage_table_clear(struct usage_table *table)
{
    if (table->count == 0)
        return;
    memset(table->slots, 0, table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    table->count = 0;
}
