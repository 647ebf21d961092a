/* A digest leads to a partition: secrets and tokens are drawn so that it is the one of their account. Those that were
 * made before that rule lie elsewhere once 'store copy' has spread the store, and it leaves an alias where their digest
 * leads, which never changes. Only stores that have aliases pay for looking. */
#pragma once
#include "core/bucket.h"
#include "engine/store.h"

/* By the store's last examination. */
bool store_has_aliases(const struct store *store);
/* For a digest that this store, to which it leads, does not know. bucket: of the account that has it, in another
 * partition, with STORE_OK. STORE_NOT_FOUND: there is no alias. done runs once, later. Call it only where
 * store_has_aliases(). */
typedef void alias_found(void *arg, enum store_result result, unsigned bucket);
void alias_find(struct store *store, const uint8_t digest[KEYRING_DIGEST_BYTES], alias_found *done, void *arg);
