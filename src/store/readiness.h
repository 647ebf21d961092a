/* Whether the store may be used: by its links, by what was found at Redis, by the lease. */
#pragma once
#include "store/types.h"

/* Whether what is read decides anything: Redis is the one that was found to hold our store (rule 11), and as
 * lease_may_decide() has it. */
bool store_may_decide(const struct store *store);
/* Changes are refused from now on, until an examination finds Redis fit. reason: a constant sentence. */
void store_doubt(struct store *store, const char *reason);
/* Redis has no memory left, or has again. It is asked all the same, for what ends something it still does. */
void store_note_full(struct store *store, bool is_full);
/* After an examination: unfit as above, or NULL. */
void store_judged(struct store *store, const char *unfit);

/* What store_is_ready() goes by has changed otherwise; Redis is examined again soon. */
void store_look_again(struct store *store);
/* The link of changes has another connection, or none: Redis is to be examined. */
void readiness_begin(struct store *store);
/* store_is_ready() may have changed. */
void readiness_tell(struct store *store);
