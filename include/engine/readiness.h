/* Whether the store may be used: its links, the last examination of Redis, and the lease. */
#pragma once
#include "engine/types.h"

/* Whether replies may decide anything: Redis was found to hold our store (rule 11), and lease_may_decide(). */
bool store_may_decide(const struct store *store);
/* Refuses changes until an examination finds Redis fit. reason: constant sentences. */
void store_doubt(struct store *store, const char *reason);
/* Redis' memory is full, or no longer is. Scripts with allow-oom still run, so calls are sent either way. */
void store_note_full(struct store *store, bool is_full);
/* The result of an examination: why Redis is not fit, or NULL. */
void store_judged(struct store *store, const char *unfit);

/* Examines Redis again in a second, and reports if store_is_ready() has changed. */
void store_look_again(struct store *store);
/* Looks at Redis again in a second; a glance is enough, unless an examination is due by then. */
void store_glance_later(struct store *store);
/* The `changes` link was lost or replaced: changes are refused until Redis is examined. */
void readiness_begin(struct store *store);
/* Reports if store_is_ready() has changed. */
void readiness_tell(struct store *store);
