/* Revocations that were scheduled, for the store's own files. Started by key_store_schedule(). */
#pragma once
#include "verb_internal.h"

/* All arguments of key_schedule.lua that repeat what was answered, for any key, without a barrier. */
void args_of_schedule_again(struct script_args *args, const struct store *store, const struct id *key, int64_t ends_ms,
                            const struct audit_source *source);
/* Some are due: writes down that they have taken effect (key_end_due.lua). One call at a time. */
void key_ends_due(struct store *store);
