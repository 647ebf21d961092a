/* Uses of keys, gathered in memory and written each interval, or earlier if their table is half full. Each use counts
 * exactly once. A crash of the node loses at most one interval. */
#pragma once
#include "core/key.h"
#include "store/usage_store.h"
#include <uv.h>

struct usage;

struct usage *usage_create(uv_loop_t *loop, struct store *store, uint32_t interval_ms);
/* Counts one accepted check. No allocation unless the table grows (up to 65,536 keys between two flushes; a metric
 * counts uses beyond that). */
void usage_count(struct usage *usage, const struct key_principal *key, int64_t wall_ms);
/* Counts one refused request of a known key. The first of its key, reason and day since the last flush takes memory and
 * is returned: set its ip and request_id at once. Otherwise NULL. At most 1,024 are gathered; a metric counts those
 * beyond. */
struct usage_refusal *usage_refuse(struct usage *usage, const struct key_principal *key, enum usage_reason reason,
                                   int64_t wall_ms);
/* Prefetches what usage_count() will touch: call the first step for several keys, then the second for the same ones,
 * then count them. Changes nothing. */
void usage_prefetch_first(const struct usage *usage, const struct id *key);
void usage_prefetch_second(const struct usage *usage, const struct id *key);
/* Writes what is gathered, then runs done, once, later, at the latest after timeout_ms. */
void usage_drain(struct usage *usage, uint32_t timeout_ms, void (*done)(void *arg), void *arg);
void usage_close(struct usage *usage, void (*closed)(void *arg), void *arg);
