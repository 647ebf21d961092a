/* The keys of the canary (src/auth/README.md#the-canary): whose they are, and how every node computes their secrets. */
#pragma once
#include "core/secret.h"

enum { CANARY_NONCE_CHARS = 32 };

/* The account of the canary's keys in that bucket. It is not stored. Its id says that it was created in 1970, so it is
 * nobody else's. canary_owns() in the prelude knows it by the same characters. */
void canary_account(uint8_t bucket, struct id *ret_account);
bool canary_owns(const struct id *account);

/* The secret of a run's key, a test key, from the run's nonce, which is public: only who has the master key of that
 * generation can compute it. The caller wipes it. False: no nonce stands for it. */
MUST_CHECK bool canary_secret(struct keyring *keyring, size_t generation, struct text nonce, struct secret *ret_secret);
/* For a new run: draws nonces until the digest of the secret lies in the bucket, as secret_draw() does, with the
 * current master key. */
void canary_draw(struct keyring *keyring, uint8_t bucket, char ret_nonce[CANARY_NONCE_CHARS + 1],
                 struct secret *ret_secret, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
