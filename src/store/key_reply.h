/* Keys in replies of scripts. */
#pragma once
#include "core/key.h"
#include "redis/reply.h"
#include "store/types.h"

/* A key as key_reply() in the prelude returns it. STORE_NOT_FOUND: its MAC is wrong. STORE_UNAVAILABLE: malformed. */
enum store_result key_reply_read(struct store *store, const struct redis_reply *reply, struct key_record *ret_key);
