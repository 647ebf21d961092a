/* Moves the partitions' slots from one shard to another without pause, as an operator with redis-cli would: one at a
 * time, each as soon as the last is done, to where it came from sooner or later. A move that a failover interrupts is
 * finished by whoever are the primaries then. A thread of its own. */
#pragma once
#include "history.h"
#include "shards.h"

struct rebalance;

struct rebalance *rebalance_start(struct shards *shards, struct history *history, unsigned seed);
/* Returns when the last move is done, for which no fault may be under way. A move that does not end is a violation. */
void rebalance_stop(struct rebalance *rebalance);
void rebalance_print_counts(const struct rebalance *rebalance);
void rebalance_destroy(struct rebalance *rebalance);
