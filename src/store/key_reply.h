/* Keys in replies of scripts. */
#pragma once
#include "core/key.h"
#include "redis/reply.h"
#include "store/types.h"

/* A key as key_reply() in the prelude returns it: {stored record, time of last use or nil, digest}. Does not verify its
 * MAC. */
MUST_CHECK bool key_reply_decode(const struct redis_reply *reply, struct key_record *ret_key);
/* The same, with its MAC verified. STORE_NOT_FOUND: its MAC is wrong. STORE_UNAVAILABLE: malformed. */
enum store_result key_reply_read(struct store *store, const struct redis_reply *reply, struct key_record *ret_key);
