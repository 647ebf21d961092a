/* Keys found by their whole secret, for whoever holds one: wherever it lies, under each master key. */
#pragma once
#include "core/token.h"
#include "records/key_store.h"
#include "engine/partitions.h"

/* STORE_NOT_FOUND: no key has this secret, or its record's MAC is wrong. secret: its digests for KEYRING_KEY_DIGEST;
 * copied. done runs once, later. last_used_ms is 0. */
void key_holder_find(const struct partitions *partitions, const struct token_digests *secret, key_found *done,
                     void *arg);

/* Revokes the key with this secret, as key_store_revoke() does; nothing limits it. STORE_NOT_FOUND: no key has this
 * secret. key: after the change with STORE_OK, or NULL if it was revoked long ago (core/tombstone.h); before it, or
 * NULL if it was not found yet, with STORE_UNKNOWN and STORE_UNAVAILABLE. The caller keeps the texts of source until
 * done, which runs once, later. */
typedef void key_held_revoked(void *arg, enum store_result result, const struct key_record *key);
void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret,
                       const struct audit_source *source, key_held_revoked *done, void *arg);

/* Counts a request with secrets that no key has against its address, once however many they are: a log may hold dozens
 * of old ones. STORE_REFUSED: the address must wait for retry_after_s. ip_tag, a keyed digest in hex, is copied. done
 * runs once, later. */
void key_holder_count_miss(const struct partitions *partitions, struct text ip_tag, store_limited *done, void *arg);
