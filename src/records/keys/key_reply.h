/* Keys in arguments and replies of scripts. */
#pragma once
#include "core/key.h"
#include "redis/reply.h"
#include "records/key_store.h"
#include "records/seal_store.h"
#include "engine/types.h"
#include "engine/verb.h"

/* The sorted sets of an account's keys, named as by key_set() in the prelude. */
extern const struct key_set {
    enum key_kind kind;
    enum key_mode mode;
    enum key_status_filter status;
    struct text name;
} KEY_SETS[SEAL_KEY_SETS];

/* Which keys of which account a caller may see: id, account, kind, test only. */
void args_add_view(struct script_args *args, const struct key_view *view, const struct id *id);
/* The arguments of a script that adds a key: its record (in storage, which must outlive the call), the actor, the
 * limits. */
void args_of_key(struct script_args *args, struct store *store, const struct key_record *key,
                 const uint8_t digest[KEY_DIGEST_BYTES], const struct audit_source *source,
                 char storage[KEY_TEXT_MAX_BYTES]);

/* A key as key_reply() in the prelude returns it: {stored record, time of last use or nil, digest}. Does not verify its
 * MAC. */
MUST_CHECK bool key_reply_decode(const struct redis_reply *reply, struct key_record *ret_key);
/* The same, with its MAC verified. STORE_NOT_FOUND: its MAC is wrong. STORE_UNAVAILABLE: malformed. */
enum store_result key_reply_read(struct store *store, const struct redis_reply *reply, void *ret_key);
