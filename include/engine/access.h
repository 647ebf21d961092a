/* The part of the store that verbs may use. */
#pragma once
#include "base/log.h"
#include "core/key.h"
#include "lease/kept.h"
#include "engine/settings.h"
#include "engine/types.h"
#include <uv.h>

struct redis_link;
struct store_time;

/* For checks only. A script or PUBLISH on this link could be delayed by Redis, and checks with it. */
struct redis_link *store_reads(struct store *store);
/* Keeps what the change ended whose callback runs, for the time when a Redis may have lost it (lease/kept.h). Usually
 * the node has heard it already, as every other did. Nothing without a member, as in commands. */
void store_keep_endings(struct store *store, const struct heard_ending *endings, size_t count);
/* The ending of a key that was revoked, or scheduled. */
struct heard_ending ending_of_key(const struct key_record *key);
/* True at most once every 5 s for each pause. */
bool store_may_log(struct store *store, struct log_pause *pause);
/* The store's time, as this node knows it. */
const struct store_time *store_known_time(const struct store *store);
uv_loop_t *store_loop(struct store *store);
struct text store_prefix(const struct store *store);
/* On one Redis, the names of a store with one partition and of one with several differ. Appends what those of the other
 * kind begin with. Appends nothing if both may lie there, and in a cluster, where all names are of one kind. */
void store_print_prefix_beside(const struct store *store, struct buf *out);
int64_t store_audit_max(const struct store *store);
/* How many records of strangers are kept here, of a kind of which there may be so many in the whole store. Fewer if
 * Redis' memory runs short: they never take what is left for others. */
int64_t store_strangers_most(const struct store *store, int64_t in_all);
/* More than nine tenths of Redis' memory are used, by the last examination. */
bool store_is_short(const struct store *store);
/* All settings, including the limits on what callers may create. */
const struct store_settings *store_limits(const struct store *store);
