/* Uses of keys, gathered in memory and written each interval, or earlier if their table is half full. Each use is
 * counted exactly once. A crash of the node loses at most one interval. Each partition of the store has tables of its
 * own and is written by itself, so one that is away does not hold up the others. */
#pragma once
#include "core/key.h"
#include "engine/partitions.h"
#include "records/usage_store.h"
#include <uv.h>

struct usage;

struct usage *usage_create(uv_loop_t *loop, const struct partitions *partitions, uint32_t interval_ms);
/* Counts accepted checks of a key. Allocates only when a table grows, up to 65,536 keys of a partition between two
 * flushes, and a million of all together; a metric counts uses beyond that. */
void usage_count(struct usage *usage, const struct key_principal *key, uint32_t uses, int64_t wall_ms);
/* Whether a table has much room left: uses that can wait should wait otherwise. */
bool usage_has_room(const struct usage *usage);
/* Counts one refused request of a known key. Returns a new entry for the first of its key, reason and day since the
 * last flush, whose ip, request_id and route the caller sets at once; otherwise NULL. An entry of a revoked key is
 * written without waiting for the interval, once a second at most. At most 1,024 entries of a partition are
 * gathered; a metric counts requests beyond that. */
struct usage_refusal *usage_refuse(struct usage *usage, const struct key_principal *key, enum usage_reason reason,
                                   int64_t wall_ms);
/* Prefetches what usage_count() will touch. Call the first step for several keys, then the second for the same keys,
 * then count them. bucket: one that lies in the partition of the key's account. */
void usage_prefetch_first(const struct usage *usage, unsigned bucket, const struct id *key);
void usage_prefetch_second(const struct usage *usage, unsigned bucket, const struct id *key);
/* Writes what has gathered. done runs once, later, at the latest after timeout_ms. */
void usage_drain(struct usage *usage, uint32_t timeout_ms, void (*done)(void *arg), void *arg);
void usage_close(struct usage *usage, void (*closed)(void *arg), void *arg);
