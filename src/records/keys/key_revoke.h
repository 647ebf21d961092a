/* Revocations in groups. One that comes while none is under way is sent at once. Those that come meanwhile leave
 * together at the end of the loop's turn, or, if enough groups are under way, when Redis has replied to one: one
 * script, one message to all nodes, one acknowledgement from each, one barrier. Each has a result of its own. Nothing
 * waits for a timer. */
#pragma once
#include "lease/barrier.h"
#include "records/key_store.h"
#include "engine/verb.h"

/* Keys in one call of key_revoke.lua. With 256 keys it takes Redis some 10 ms, and its message has 16 KiB. */
enum { REVOKED_TOGETHER_MAX = 256 };

/* The arguments of key_revoke.lua before those of its keys, and those of one key. is_discard: if an id does not exist
 * yet, a later insert of it must fail. member, barrier: "-" for none. */
enum { REVOCATION_HEAD_ARGS = 4, REVOCATION_ARGS = 8 };
void args_begin_revocations(struct script_args *args, const struct store *store, bool is_discard, struct text member,
                            struct text barrier);
void args_add_revocation(struct script_args *args, const struct key_view *view, const struct id *id,
                         const struct audit_source *source);

/* What key_revoke.lua replied on its index-th key. STORE_OK: *ret_key is the record after the change, and no node
 * accepts the key after the barrier. *ret_again: it was revoked before. STORE_UNKNOWN: the reply is malformed. */
enum store_result revocation_read(struct store *store, const struct redis_reply *reply, size_t index,
                                  struct key_record *ret_key, bool *ret_again);
/* That item of the reply; NULL: there is none. */
const struct redis_reply *revocation_reply(const struct redis_reply *reply, size_t index);
/* As barrier_wait(), after key_revoke.lua has replied with STORE_OK. If the reply is malformed, drops the barrier too.
 */
MUST_CHECK bool revocation_wait(struct store *store, struct barrier *barrier, const struct redis_reply *reply,
                                void (*done)(void *arg, bool is_over), void *arg);
/* For one that is revoked alone without a barrier: turns the result of the call into its own. */
enum store_result revocation_result(struct store *store, enum store_result result, const struct redis_reply *reply);
