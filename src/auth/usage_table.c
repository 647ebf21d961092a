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
_Static_assert(sizeof(struct usage_count) == MEM_LINE_BYTES, "as the header says");

/* An id's 80 random bits tell keys apart, whatever their first ten characters. */
enum { TAIL_CHARS = 16 };

void usage_table_init(struct usage_table *table)
{
    *table = (struct usage_table){.capacity = CAPACITY_FIRST};
    table->counts = mem_alloc_lines(USAGE_TABLE_MAX);
    table->slots = mem_alloc(CAPACITY_FIRST * SLOTS_PER_ENTRY * sizeof *table->slots);
}

void usage_table_finish(struct usage_table *table)
{
    free(table->counts);
    free(table->slots);
}

static const char *tail_of(const char key[ULID_TEXT_CHARS])
{
    return key + ULID_TEXT_CHARS - TAIL_CHARS;
}

/* Nobody outside chooses those characters; the last ones suffice. Ids of one millisecond follow each other, so that
 * only the very last differ: big-endian they are the low bits, which a product spreads over all that are above. */
static uint64_t hash_of(const char key[ULID_TEXT_CHARS])
{
    uint64_t last;
    memcpy(&last, key + ULID_TEXT_CHARS - sizeof last, sizeof last);
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

static int64_t last_used(const struct usage_count *count)
{
    return (int64_t)count->last_used_ms;
}

static void set_last_used(struct usage_count *count, int64_t wall_ms)
{
    count->last_used_ms = (uint64_t)wall_ms & ((UINT64_C(1) << USAGE_TIME_BITS) - 1);
}

static bool is_same_day(int64_t a_ms, int64_t b_ms)
{
    return a_ms / DAY_MS == b_ms / DAY_MS;
}

static bool is_same(const struct usage_count *count, const char key[ULID_TEXT_CHARS], int64_t wall_ms)
{
    return memcmp(tail_of(count->key), tail_of(key), TAIL_CHARS) == 0 && is_same_day(last_used(count), wall_ms);
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
static uint32_t *find_slot(const struct usage_table *table, const char key[ULID_TEXT_CHARS], int64_t wall_ms)
{
    const uint64_t hash = hash_of(key);
    size_t at = home_of(table, hash);
    for (uint32_t slot; (slot = table->slots[at]) != 0; at = (at + 1) & slot_mask(table))
        if ((slot & ~(uint32_t)NUMBER_MASK) == tag_of(hash) && is_same(&table->counts[index_of(slot)], key, wall_ms))
            break;
    return &table->slots[at];
}

static void point_to(struct usage_table *table, size_t index)
{
    const struct usage_count *count = &table->counts[index];
    *find_slot(table, count->key, last_used(count)) = tag_of(hash_of(count->key)) | (uint32_t)(index + 1);
}

static void grow(struct usage_table *table)
{
    table->capacity *= 2;
    free(table->slots);
    table->slots = mem_alloc(table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++)
        point_to(table, i);
}

static void add_new(struct usage_table *table, const struct key_record *key, int64_t wall_ms)
{
    const size_t index = table->count++;
    struct usage_count *count = &table->counts[index];
    memcpy(count->account, id_chars(&key->account), ULID_TEXT_CHARS);
    memcpy(count->key, id_chars(&key->id), ULID_TEXT_CHARS);
    count->uses = 1;
    set_last_used(count, wall_ms);
    count->is_device = key->kind == KEY_DEVICE;
    count->is_live = key->mode == MODE_LIVE;
    point_to(table, index);
}

bool usage_table_add(struct usage_table *table, const struct key_record *key, int64_t wall_ms)
{
    CHECK(key->id.text[0] && key->account.text[0]);
    const uint32_t slot = *find_slot(table, id_chars(&key->id), wall_ms);
    if (slot) {
        struct usage_count *count = &table->counts[index_of(slot)];
        count->uses += count->uses < UINT32_MAX;
        if (last_used(count) < wall_ms)
            set_last_used(count, wall_ms);
        return true;
    }
    if (table->count == table->capacity) {
        if (table->capacity == USAGE_TABLE_MAX)
            return false;
        grow(table);
    }
    add_new(table, key, wall_ms);
    return true;
}

void usage_table_prefetch_slot(const struct usage_table *table, const struct id *key)
{
    mem_prefetch(&table->slots[home_of(table, hash_of(id_chars(key)))], sizeof *table->slots);
}

/* The first that may be that key's: nearly always it is. */
void usage_table_prefetch_count(const struct usage_table *table, const struct id *key)
{
    const uint64_t hash = hash_of(id_chars(key));
    for (size_t at = home_of(table, hash); table->slots[at]; at = (at + 1) & slot_mask(table)) {
        if ((table->slots[at] & ~(uint32_t)NUMBER_MASK) != tag_of(hash))
            continue;
        mem_prefetch(&table->counts[index_of(table->slots[at])], sizeof *table->counts);
        return;
    }
}

static void tell(const struct usage_count *count, struct usage_entry *ret_entry)
{
    id_from_chars(key_id_kind(count->is_device ? KEY_DEVICE : KEY_API), count->key, &ret_entry->key);
    id_from_chars(ID_ACCOUNT, count->account, &ret_entry->account);
    ret_entry->mode = count->is_live ? MODE_LIVE : MODE_TEST;
    ret_entry->uses = count->uses;
    ret_entry->last_used_ms = last_used(count);
}

size_t usage_table_batch(const struct usage_table *table, size_t first, size_t most, struct usage_entry *ret_entries)
{
    const struct usage_count *counts = table->counts + first;
    size_t n;
    for (n = 0; n < most && first + n < table->count; n++) {
        if (!is_same_day(last_used(&counts[n]), last_used(counts)))
            break;
        tell(&counts[n], &ret_entries[n]);
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
