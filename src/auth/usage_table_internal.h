/* Counts of one interval: dense, so that a slice of it is a batch, with an index by key and UTC day. */
#pragma once
#include "core/key.h"
#include "store/usage_store.h"

enum { USAGE_TABLE_MAX = 65536 };

struct usage_table {
    struct usage_entry *entries; /* in the order of first use */
    uint32_t *slots;             /* open addressing, twice the capacity: 0, or index + 1 and a tag */
    size_t count, capacity;      /* capacity: a power of two */
};

void usage_table_init(struct usage_table *table);
void usage_table_finish(struct usage_table *table);
/* False: the table is full. */
MUST_CHECK bool usage_table_add(struct usage_table *table, const struct key_record *key, int64_t wall_ms);
/* Keeps its memory. */
void usage_table_clear(struct usage_table *table);
