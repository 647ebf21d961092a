/* Refused requests of one interval, by key, reason and UTC day. They are rare, and a client that sends many must not
 * fill this node's memory. So there is room for few, and a metric counts the others. */
#pragma once
#include "core/key.h"
#include "records/usage_store.h"

enum { REFUSAL_TABLE_MAX = 1024, REFUSAL_SLOTS = 2 * REFUSAL_TABLE_MAX };

struct refusal_table {
    struct usage_refusal *entries; /* in the order of their first request; NULL until there is one */
    uint16_t slots[REFUSAL_SLOTS]; /* open addressing: 0, or index + 1 */
    size_t count;
};

/* Zeroed memory is an empty table. */
void refusal_table_finish(struct refusal_table *table);
/* NULL: the table is full. A new entry has count 1. */
MUST_CHECK struct usage_refusal *refusal_table_add(struct refusal_table *table, const struct key_principal *key,
                                                   enum usage_reason reason, int64_t wall_ms);
/* Keeps its memory. */
void refusal_table_clear(struct refusal_table *table);
