#include "usage_table_internal.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 256, SLOTS_PER_ENTRY = 2, DAY_MS = 86400000, TAIL_CHARS = 8 };
/* A slot's upper bits are some of the hash's: they spare looks at entries that are not the one sought, each of which
 * may be a cache miss. */
enum { NUMBER_BITS = 17, NUMBER_MASK = (1 << NUMBER_BITS) - 1 };

_Static_assert((int)USAGE_TABLE_MAX <= (int)NUMBER_MASK, "an entry's number + 1 fits");

void usage_table_init(struct usage_table *table)
{
    *table = (struct usage_table){.capacity = CAPACITY_FIRST};
    table->entries = mem_alloc(CAPACITY_FIRST * sizeof *table->entries);
    table->slots = mem_alloc(CAPACITY_FIRST * SLOTS_PER_ENTRY * sizeof *table->slots);
}

void usage_table_finish(struct usage_table *table)
{
    free(table->entries);
    free(table->slots);
}

/* The last characters of an id are random bits, and nobody outside chooses them. */
static uint64_t hash_of(const struct id *id)
{
    const struct text t = id_text(id);
    uint64_t tail = 0;
    if (t.len >= TAIL_CHARS)
        memcpy(&tail, t.ptr + t.len - TAIL_CHARS, TAIL_CHARS);
    return tail * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)hash & ~(uint32_t)NUMBER_MASK;
}

static struct usage_entry *entry_of(const struct usage_table *table, uint32_t slot)
{
    return &table->entries[(slot & NUMBER_MASK) - 1];
}

static bool is_same(const struct usage_entry *entry, const struct id *key, int64_t wall_ms)
{
    return entry->day_ms / DAY_MS == wall_ms / DAY_MS && id_equal(&entry->key, key);
}

/* The slot of that key and day, or the free one where it belongs. */
static uint32_t *find_slot(struct usage_table *table, const struct id *key, int64_t wall_ms)
{
    const size_t mask = table->capacity * SLOTS_PER_ENTRY - 1;
    const uint64_t hash = hash_of(key);
    size_t at = (size_t)(hash >> 32) & mask;
    for (uint32_t slot; (slot = table->slots[at]) != 0; at = (at + 1) & mask)
        if ((slot & ~(uint32_t)NUMBER_MASK) == tag_of(hash) && is_same(entry_of(table, slot), key, wall_ms))
            break;
    return &table->slots[at];
}

static uint32_t slot_of(const struct id *key, size_t index)
{
    return tag_of(hash_of(key)) | (uint32_t)(index + 1);
}

static void grow(struct usage_table *table)
{
    table->capacity *= 2;
    table->entries = mem_resize(table->entries, table->capacity * sizeof *table->entries);
    free(table->slots);
    table->slots = mem_alloc(table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++)
        *find_slot(table, &table->entries[i].key, table->entries[i].day_ms) = slot_of(&table->entries[i].key, i);
}

bool usage_table_add(struct usage_table *table, const struct key_record *key, int64_t wall_ms)
{
    uint32_t *slot = find_slot(table, &key->id, wall_ms);
    if (*slot) {
        struct usage_entry *entry = entry_of(table, *slot);
        entry->uses += entry->uses < UINT32_MAX;
        if (entry->last_used_ms < wall_ms)
            entry->last_used_ms = wall_ms;
        return true;
    }
    if (table->count == table->capacity) {
        if (table->capacity == USAGE_TABLE_MAX)
            return false;
        grow(table);
        slot = find_slot(table, &key->id, wall_ms);
    }
    table->entries[table->count++] = (struct usage_entry){.key = key->id,
                                                          .account = key->account,
                                                          .mode = key->mode,
                                                          .uses = 1,
                                                          .day_ms = wall_ms,
                                                          .last_used_ms = wall_ms};
    *slot = slot_of(&key->id, table->count - 1);
    return true;
}

void usage_table_clear(struct usage_table *table)
{
    if (table->count == 0)
        return;
    memset(table->slots, 0, table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    table->count = 0;
}
