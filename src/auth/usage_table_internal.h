/* Counts of one interval: dense, so that a slice of it is a batch, with an index by key and UTC day. */
#pragma once
#include "core/key.h"
#include "store/usage_store.h"

enum { USAGE_TABLE_MAX = 65536 };

enum { USAGE_TAIL_CHARS = 16 };

/* What a check touches of an entry; two or three of them are in one cache line. */
struct usage_count {
    char
        tail[USAGE_TAIL_CHARS]; /* the id's 80 random bits: they tell keys apart, whatever their first ten characters */
    int64_t last_used_ms;       /* tells the UTC day too */
    uint32_t uses;
};

struct usage_table {
    struct usage_entry *entries; /* in the order of first use; uses and last_used_ms are set by usage_table_batch() */
    struct usage_count *counts;  /* of the same index */
    uint32_t *slots;             /* open addressing, twice the capacity: 0, or index + 1 and a tag */
    size_t count, capacity;      /* capacity: a power of two */
};

void usage_table_init(struct usage_table *table);
void usage_table_finish(struct usage_table *table);
/* False: the table is full. */
MUST_CHECK bool usage_table_add(struct usage_table *table, const struct key_record *key, int64_t wall_ms);
/* Has the processor fetch what usage_table_add() will touch of that key. In two steps, as the second must see what the
 * first has brought. */
void usage_table_prefetch_slot(const struct usage_table *table, const struct id *key);
void usage_table_prefetch_count(const struct usage_table *table, const struct id *key);
/* The entries from `first` on, whole, at most `most` of them and all of one day; *ret_count says how many. */
const struct usage_entry *usage_table_batch(struct usage_table *table, size_t first, size_t most, size_t *ret_count);
/* Keeps its memory. */
void usage_table_clear(struct usage_table *table);
