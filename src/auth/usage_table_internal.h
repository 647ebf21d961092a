/* Uses of one interval: a dense array, so that a range of it is a batch, with an index by key and UTC day. */
#pragma once
#include "core/key.h"
#include "records/usage_store.h"

enum { USAGE_TABLE_MAX = 65536 };

struct usage_table {
    struct usage_entry *entries; /* in the order of first use; allocated in full, but mostly never touched */
    uint32_t *slots;             /* open addressing: 0, or index + 1 and a tag */
    size_t count;
    size_t capacity; /* half the number of slots; a power of two */
    size_t most;     /* entries; as given to usage_table_init() */
};

/* most: entries, a power of two from 256 to USAGE_TABLE_MAX. */
void usage_table_init(struct usage_table *table, size_t most);
void usage_table_finish(struct usage_table *table);
/* False: the table is full. */
MUST_CHECK bool usage_table_add(struct usage_table *table, const struct key_principal *key, uint32_t uses,
                                int64_t wall_ms);
/* Prefetches what usage_table_add() will touch for that key. Two steps, because the second reads what the first
 * fetched. */
void usage_table_prefetch_slot(const struct usage_table *table, const struct id *key);
void usage_table_prefetch_entry(const struct usage_table *table, const struct id *key);
/* How many of the entries from `first` on make a batch: all of one day, and no more work for Redis than `most` keys of
 * one account and mode. At least one, at most `most`. */
size_t usage_table_batch(const struct usage_table *table, size_t first, size_t most);
/* Keeps its memory. */
void usage_table_clear(struct usage_table *table);
