/* The store: three links to one Redis (checks, other scripts that read, changes), so that a change that waits for
 * replicas never holds up a check; the embedded scripts, the key prefix. Other store headers are its verbs. All verbs
 * are asynchronous: done runs exactly once, later, within the timeout. */
#pragma once
#include "store/facts.h"
#include "store/settings.h"
#include "store/types.h"
#include <uv.h>

/* ready runs whenever store_is_ready() changes. */
struct store *store_create(uv_loop_t *loop, const struct store_settings *settings, void (*ready)(void *arg), void *arg);
void store_close(struct store *store, void (*closed)(void *arg), void *arg);
/* The leases at its Redis, which a node joins; it must have left before the store is closed. */
struct lease;
struct lease *store_lease(const struct store *store);

/* A Redis whose memory is full is fit as well: what ends something still works.
 * All links up, with Sentinels also the node's lease, the store the one that is known, the schema version known and
 * not newer than ours, Redis durable (or unsafe_redis) and writable: looked at on each connection, and again every few
 * seconds. */
bool store_is_ready(const struct store *store);
/* Why not, one sentence for readyz, logs and doctor. Of a store that is ready: what it cannot do at present, or empty.
 */
const char *store_trouble(const struct store *store);
/* Not ready, for Redis still reads its data from disk. */
bool store_is_loading(const struct store *store);

/* An operator accepts what the present Redis lacks of what nodes have acknowledged, so that they go on with it.
 * STORE_NOT_FOUND: the store is empty. */
void store_accept_loss(struct store *store, void (*done)(void *arg, enum store_result result), void *arg);
/* The store waits for its first account; so does a node, for nobody but people can tell a new store from a lost one. */
bool store_is_empty(const struct store *store);

/* Without a connection it waits for one, up to the timeout; then STORE_UNAVAILABLE. Claims an empty store's schema. */
void store_examine(struct store *store,
                   void (*done)(void *arg, enum store_result result, const struct store_facts *facts), void *arg);
/* Whether records without a seal are taken for a while: those of an earlier version. */
bool store_takes_unsealed(const struct store *store);
