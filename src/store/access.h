/* What a store has, for its verbs. */
#pragma once
#include "base/log.h"
#include "store/settings.h"
#include "store/types.h"
#include <uv.h>

struct redis_link;
struct key_finder;
struct key_discards;

/* Checks, and nothing that Redis could hold up (a script, a publication): then they would be held up as well. */
struct redis_link *store_reads(struct store *store);
/* As promises_keep_revocation(); commands keep none. */
void store_keep_revocation(struct store *store, const struct id *key, struct text actor);
/* True at most once in a few seconds. */
bool store_may_log(struct store *store, struct log_pause *pause);
uv_loop_t *store_loop(struct store *store);
struct text store_prefix(const struct store *store);
int64_t store_audit_max(const struct store *store);
/* Among them: what somebody may make. */
const struct store_settings *store_limits(const struct store *store);
/* In the store's keeping: the check path's calls, and the keys that nobody got. */
struct key_finder *store_key_finder(const struct store *store);
struct key_discards *store_key_discards(const struct store *store);
