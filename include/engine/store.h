/* The store: three links to one Redis, the embedded scripts and the key prefix. Checks, other reads and changes each
 * have a link, so a change that waits for replicas never delays a check. The other headers here are its verbs. All
 * verbs are asynchronous: done runs exactly once, later, within the timeout. */
#pragma once
#include "engine/facts.h"
#include "engine/settings.h"
#include "engine/types.h"
#include <uv.h>

/* ready runs whenever store_is_ready() changes. */
struct store *store_create(uv_loop_t *loop, const struct store_settings *settings, void (*ready)(void *arg), void *arg);
void store_close(struct store *store, void (*closed)(void *arg), void *arg);
/* The leases at this Redis. A node joins them, and must leave before the store is closed. */
struct lease;
struct lease *store_lease(const struct store *store);

/* Ready: all links are up; Redis holds the expected store, with a schema version not newer than ours; it is writable
 * and durable (or unsafe_redis); and behind Sentinel the node has a lease. Examined on each connection and every few
 * seconds; its settings are read every second. A Redis whose memory is full counts as ready, because revocations and
 * sign-ins still work. */
bool store_is_ready(const struct store *store);
/* Why the store is not ready, as sentences for /readyz, logs and doctor. If it is ready: what it cannot do at present,
 * or empty. */
const char *store_trouble(const struct store *store);
/* Why a change ended with that result although the store is ready, as sentences for whoever asked for it: Redis' memory
 * is full, or the audit log cannot be written. NULL: for neither of these reasons. */
const char *store_refusal(const struct store *store, enum store_result result);
/* Not ready because Redis is still loading its data from disk. */
bool store_is_loading(const struct store *store);

/* Redis' clock, by the last heartbeat or examination. */
struct redis_clock;
const struct redis_clock *store_redis_clock(const struct store *store);
/* Redis' clock is known when then runs: at once, unless this machine's clock was set lately and Redis must be asked
 * first. If Redis does not tell it, then runs all the same, and scripts refuse times that are far off. */
void store_know_clock(struct store *store, void (*then)(void *arg), void *arg);
/* The id of the store; empty: not known yet. */
struct text store_id(const struct store *store);
/* "Redis 7.0.15", "Valkey 8.1.1"; empty before the first examination. */
const char *store_server(const struct store *store);
/* settings.partitions, at least 1, and settings.partition */
unsigned store_partitions(const struct store *store);
unsigned store_partition(const struct store *store);
/* settings.durability_asserted */
bool store_asserts_durability(const struct store *store);
/* Notes in the store how this node knows that Redis is durable (settings.durability_asserted). If that differs from
 * what is noted, it becomes an event in the store's trail. */
void store_note_durability(struct store *store, void (*done)(void *arg, enum store_result result), void *arg);

/* Accepts, for an operator, the loss of acknowledged changes that this Redis lacks, so that nodes serve again. loss:
 * what was accepted; NULL unless STORE_OK. STORE_NOT_FOUND: the store is empty. */
struct store_loss {
    int64_t endings, others; /* changes that ended something and were still missing; others that were lost */
};
typedef void store_loss_accepted(void *arg, enum store_result result, const struct store_loss *loss);
void store_accept_loss(struct store *store, store_loss_accepted *done, void *arg);
/* Raises the schema to the newest that this program knows; done if no node of an earlier version serves any longer.
 * was_raised: it was older. STORE_NOT_FOUND: the store is empty. Writes event store.upgraded of the whole store. */
void store_upgrade(struct store *store, void (*done)(void *arg, enum store_result result, bool was_raised), void *arg);
/* The store's time, by which scheduled revocations take effect, and Redis' clock. */
struct store_settlement {
    int64_t ahead_ms; /* by which that time is ahead of the clock; below 0: behind it */
    bool is_other;    /* it is not exactly the clock */
    int64_t ending;   /* scheduled revocations that take effect at once if it becomes the clock */
    int64_t clock_ms; /* Redis' clock */
    int64_t due;      /* with STORE_CONFLICT: revocations that have taken effect and must be written down first */
};
/* Makes the store's time Redis' clock, for an operator who says that this is right. found is what it was before, valid
 * during the call. STORE_CONFLICT: the time is ahead, and revocations are due that no node has written down yet: going
 * back would undo them. STORE_NOT_FOUND: the store is empty. Writes event store.time_settled of the whole store, unless
 * the time is the clock already. looks: changes nothing. */
typedef void store_time_settled(void *arg, enum store_result result, const struct store_settlement *found);
void store_settle_time(struct store *store, bool looks, store_time_settled *done, void *arg);
/* The store has no account yet. A node waits for the first one instead of claiming the store: only a person can tell a
 * new store from a lost one. */
bool store_is_empty(const struct store *store);

/* Examines Redis. Without a connection it waits for one up to the timeout, then STORE_UNAVAILABLE. Claims the schema of
 * an empty store. facts is valid during the call; NULL unless STORE_OK. */
void store_examine(struct store *store,
                   void (*done)(void *arg, enum store_result result, const struct store_facts *facts), void *arg);
/* Whether records without a seal, made by an earlier version, are accepted for now. */
bool store_takes_unsealed(const struct store *store);
