/* The partitions of a store. Redis Cluster spreads names over its primaries by slots, and a script may touch one slot.
 * So everything that one account owns lies in one partition, whose names share a slot. A partition is a struct store by
 * itself: connections, scripts, leases and readiness of its own. One Redis usually holds a single partition. */
#pragma once
#include "core/bucket.h"
#include "engine/store.h"

struct partitions;

/* settings->partitions of them. changed runs whenever store_is_ready() changes for one of them. */
struct partitions *partitions_create(uv_loop_t *loop, const struct store_settings *settings,
                                     void (*changed)(void *arg, struct store *store), void *arg);
void partitions_close(struct partitions *partitions, void (*closed)(void *arg), void *arg);
/* From then on an operation that was answered by one partition must not go on in another, which may be gone. */
bool partitions_are_closing(const struct partitions *partitions);

/* The beginning of that partition's names; out has room for REDIS_PREFIX_MAX_BYTES. */
void partition_prefix(const struct store_settings *settings, unsigned number, struct buf *out);

unsigned partitions_count(const struct partitions *partitions);
/* In the order of their numbers, from 0. */
struct store *partitions_at(const struct partitions *partitions, unsigned number);
/* How many are ready. */
unsigned partitions_ready(const struct partitions *partitions);
/* The sentences of store_trouble(), each behind the numbers of the partitions that it is true of, up to 16, unless it
 * is true of all. If there is too little room, it says how many partitions it left out. It never makes out fail. */
void partitions_trouble(const struct partitions *partitions, struct buf *out);
/* store_refusal() of the first partition that has one: a change may touch several. */
const char *partitions_refusal(const struct partitions *partitions, enum store_result result);
/* Gives each partition its part of a new store; one that exists stays as it is. STORE_CONFLICT: a partition belongs to
 * another store, or to one with another number of partitions. */
void partitions_found(struct partitions *partitions, store_done *done, void *arg);
/* The store has no account yet. */
bool partitions_are_empty(const struct partitions *partitions);
/* The partition that holds a bucket (core/bucket.h), an account, or what a keyed digest names. */
struct store *partition_of_bucket(const struct partitions *partitions, unsigned bucket);
struct store *partition_of_account(const struct partitions *partitions, const struct id *account);
struct store *partition_of_digest(const struct partitions *partitions, const uint8_t digest[KEYRING_DIGEST_BYTES]);
