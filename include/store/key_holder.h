/* Keys found by their whole secret, for whoever holds one: wherever it lies, under each master key. */
#pragma once
#include "core/token.h"
#include "store/key_store.h"
#include "store/partitions.h"

/* STORE_NOT_FOUND: no key has this secret, or its record's MAC is wrong. secret: its digests for KEYRING_KEY_DIGEST;
 * copied. done runs once, later. last_used_ms is 0. */
void key_holder_find(const struct partitions *partitions, const struct token_digests *secret, key_found *done,
                     void *arg);

/* Revokes the key with this secret, as key_store_revoke() does. A secret that no key has counts against the address,
 * and is refused while that must wait (STORE_REFUSED: retry after retry_after_s); one that a key has never is: revoking
 * is not limited, and neighbours share addresses. key: after the change with STORE_OK; before it, or NULL if it was not
 * found yet, with STORE_UNKNOWN and STORE_UNAVAILABLE. The caller keeps ip_tag (a keyed digest in hex) and the texts of
 * source until done, which runs once, later. */
typedef void key_held_revoked(void *arg, enum store_result result, const struct key_record *key,
                              uint32_t retry_after_s);
void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret, struct text ip_tag,
                       const struct audit_source *source, key_held_revoked *done, void *arg);
