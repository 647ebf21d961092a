/* Outcomes of plain commands. */
#pragma once
#include "redis/link.h"
#include "engine/types.h"

/* Maps the outcome of a plain command to a result and logs error replies, rate-limited. The reply may be read only if
 * this returns STORE_OK. */
enum store_result store_outcome(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply);
/* Logs an error of Redis or of a script as a rate-limited warning. */
void store_note_error(struct store *store, struct text error);
/* Logs a rate-limited warning about a malformed reply. what: the kind of reply. */
void store_malformed(struct store *store, const char *what);
