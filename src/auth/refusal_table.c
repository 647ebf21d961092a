#include "refusal_table_internal.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 86400000 };

void refusal_table_finish(struct refusal_table *table)
{
    free(table->entries);
}

/* Clients cannot choose an id's last characters, so they cannot force collisions. */
static size_t home_of(const char key[ULID_TEXT_CHARS], enum usage_reason reason)
{
    uint64_t last;
    memcpy(&last, key + ULID_TEXT_CHARS - sizeof last, sizeof last);
    return (size_t)(((last + reason) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % REFUSAL_SLOTS;
}

static bool is_same(const struct usage_refusal *entry, const char key[ULID_TEXT_CHARS], enum usage_reason reason,
                    int64_t wall_ms)
{
    return entry->reason == reason && entry->first_ms / DAY_MS == wall_ms / DAY_MS &&
           memcmp(entry->key, key, ULID_TEXT_CHARS) == 0;
}

static struct usage_refusal *add_new(struct refusal_table *table, uint16_t *slot, const struct key_principal *key,
                                     enum usage_reason reason, int64_t wall_ms)
{
    struct usage_refusal *entry;

    if (table->count == REFUSAL_TABLE_MAX)
        return NULL;
    if (!table->entries)
        table->entries = mem_alloc(REFUSAL_TABLE_MAX * sizeof *table->entries);
    REQUIRE(*slot == 0);
    entry = &table->entries[table->count++];
    *entry = (struct usage_refusal){
        .reason = reason,
        .is_device = key->kind == KEY_DEVICE,
        .is_live = key->mode == MODE_LIVE,
        .count = 1,
        .first_ms = wall_ms,
    };
    memcpy(entry->account, id_chars(&key->account), ULID_TEXT_CHARS);
    memcpy(entry->key, id_chars(&key->id), ULID_TEXT_CHARS);
    *slot = (uint16_t)table->count;
    return entry;
}

struct usage_refusal *refusal_table_add(struct refusal_table *table, const struct key_principal *key,
                                        enum usage_reason reason, int64_t wall_ms)
{
    const char *id = id_chars(&key->id);
    size_t at = home_of(id, reason);

    for (; table->slots[at]; at = (at + 1) % REFUSAL_SLOTS) {
        struct usage_refusal *entry = &table->entries[table->slots[at] - 1];

        if (!is_same(entry, id, reason, wall_ms))
            continue;
        entry->count += entry->count < UINT32_MAX;
        return entry;
    }
    return add_new(table, &table->slots[at], key, reason, wall_ms);
}

void refusal_table_clear(struct refusal_table *table)
{
    if (table->count == 0)
        return;
    memset(table->slots, 0, sizeof table->slots);
    table->count = 0;
}
