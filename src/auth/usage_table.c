#include "usage_table_internal.h"
#include "base/check.h"
#include "base/mem.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 256, SLOTS_PER_ENTRY = 2, DAY_MS = 86400000 };
/* A slot's upper bits are some of the hash's: they spare looks at entries that are not the one sought, each of which
 * may be a cache miss. */
enum { NUMBER_BITS = 17, NUMBER_MASK = (1 << NUMBER_BITS) - 1 };

_Static_assert((int)USAGE_TABLE_MAX <= (int)NUMBER_MASK, "an entry's number + 1 fits");

void usage_table_init(struct usage_table *table)
{
    *table = (struct usage_table){.capacity = CAPACITY_FIRST};
    table->entries = mem_alloc(CAPACITY_FIRST * sizeof *table->entries);
    table->counts = mem_alloc(CAPACITY_FIRST * sizeof *table->counts);
    table->slots = mem_alloc(CAPACITY_FIRST * SLOTS_PER_ENTRY * sizeof *table->slots);
}

void usage_table_finish(struct usage_table *table)
{
    free(table->entries);
    free(table->counts);
    free(table->slots);
}

static const char *tail_of(const struct id *id)
{
    const struct text t = id_text(id);
    CHECK(t.len > USAGE_TAIL_CHARS);
    return t.ptr + t.len - USAGE_TAIL_CHARS;
}

/* Nobody outside chooses those characters; the last ones suffice. Ids of one millisecond follow each other, so that
 * only the very last differ: big-endian they are the low bits, which a product spreads over all that are above. */
static uint64_t hash_of(const char *tail)
{
    uint64_t last;
    memcpy(&last, tail + USAGE_TAIL_CHARS - sizeof last, sizeof last);
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

static bool is_same_day(int64_t a_ms, int64_t b_ms)
{
    return a_ms / DAY_MS == b_ms / DAY_MS;
}

static bool is_same(const struct usage_count *count, const char *tail, int64_t wall_ms)
{
    return memcmp(count->tail, tail, USAGE_TAIL_CHARS) == 0 && is_same_day(count->last_used_ms, wall_ms);
}

static size_t slot_mask(const struct usage_table *table)
{
    return table->capacity * SLOTS_PER_ENTRY - 1;
}

static size_t home_of(const struct usage_table *table, uint64_t hash)
{
    return (size_t)(hash >> 32) & slot_mask(table);
}

/* The slot of that key and day, or the free one where it belongs. */
static uint32_t *find_slot(const struct usage_table *table, const char *tail, int64_t wall_ms)
{
    const uint64_t hash = hash_of(tail);
    size_t at = home_of(table, hash);
    for (uint32_t slot; (slot = table->slots[at]) != 0; at = (at + 1) & slot_mask(table))
        if ((slot & ~(uint32_t)NUMBER_MASK) == tag_of(hash) && is_same(&table->counts[index_of(slot)], tail, wall_ms))
            break;
    return &table->slots[at];
}

static void point_to(struct usage_table *table, size_t index)
{
    const struct usage_count *count = &table->counts[index];
    *find_slot(table, count->tail, count->last_used_ms) = tag_of(hash_of(count->tail)) | (uint32_t)(index + 1);
}

static void grow(struct usage_table *table)
{
    table->capacity *= 2;
    table->entries = mem_resize(table->entries, table->capacity * sizeof *table->entries);
    table->counts = mem_resize(table->counts, table->capacity * sizeof *table->counts);
    free(table->slots);
    table->slots = mem_alloc(table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++)
        point_to(table, i);
}

static void add_new(struct usage_table *table, const struct key_record *key, const char *tail, int64_t wall_ms)
{
    const size_t index = table->count++;
    table->entries[index] =
        (struct usage_entry){.key = key->id, .account = key->account, .mode = key->mode, .day_ms = wall_ms};
    table->counts[index] = (struct usage_count){.last_used_ms = wall_ms, .uses = 1};
    memcpy(table->counts[index].tail, tail, USAGE_TAIL_CHARS);
    point_to(table, index);
}

bool usage_table_add(struct usage_table *table, const struct key_record *key, int64_t wall_ms)
{
    const char *tail = tail_of(&key->id);
    const uint32_t slot = *find_slot(table, tail, wall_ms);
    if (slot) {
        struct usage_count *count = &table->counts[index_of(slot)];
        count->uses += count->uses < UINT32_MAX;
        if (count->last_used_ms < wall_ms)
            count->last_used_ms = wall_ms;
        return true;
    }
    if (table->count == table->capacity) {
        if (table->capacity == USAGE_TABLE_MAX)
            return false;
        grow(table);
    }
    add_new(table, key, tail, wall_ms);
    return true;
}

void usage_table_prefetch_slot(const struct usage_table *table, const struct id *key)
{
    mem_prefetch(&table->slots[home_of(table, hash_of(tail_of(key)))], sizeof *table->slots);
}

/* The first that may be that key's: nearly always it is. */
void usage_table_prefetch_count(const struct usage_table *table, const struct id *key)
{
    const uint64_t hash = hash_of(tail_of(key));
    for (size_t at = home_of(table, hash); table->slots[at]; at = (at + 1) & slot_mask(table)) {
        if ((table->slots[at] & ~(uint32_t)NUMBER_MASK) != tag_of(hash))
            continue;
        mem_prefetch(&table->counts[index_of(table->slots[at])], sizeof *table->counts);
        return;
    }
}

const struct usage_entry *usage_table_batch(struct usage_table *table, size_t first, size_t most, size_t *ret_count)
{
    struct usage_entry *entries = table->entries + first;
    const struct usage_count *counts = table->counts + first;
    size_t n = 0;

    while (n < most && first + n < table->count && is_same_day(entries[n].day_ms, entries[0].day_ms)) {
        entries[n].uses = counts[n].uses;
        entries[n].last_used_ms = counts[n].last_used_ms;
        n++;
    }
    *ret_count = n;
    return entries;
}

void usage_table_clear(struct usage_table *table)
{
    if (table->count == 0)
        return;
    memset(table->slots, 0, table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    table->count = 0;
}
