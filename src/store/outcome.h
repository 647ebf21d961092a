/* How plain commands ended. */
#pragma once
#include "redis/link.h"
#include "store/types.h"

/* Maps a plain command's outcome; logs error replies. STORE_OK alone: the reply may be read. */
enum store_result store_outcome(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply);
/* One rate-limited warning that Redis answered something that can't be. */
void store_malformed(struct store *store, const char *what);
