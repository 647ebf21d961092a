/* Revocations that were scheduled, for the store's own files. Started by key_store_schedule(). */
#pragma once
#include "verb_internal.h"

/* Some are due: writes down that they have taken effect (key_end_due.lua). One call at a time. */
void key_ends_due(struct store *store);
