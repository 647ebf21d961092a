/* A key on its way to who gets it: minted, stored by its digest, told once. A key that was stored, or perhaps stored,
 * and whose answer did not arrive is revoked at once, for nobody has its secret. */
#pragma once
#include "exchange_internal.h"
#include "core/secret.h"

struct key_grant {
    struct exchange *exchange;
    struct key_record key;
    struct secret secret; /* wiped when the request is freed */
    uint8_t digest[KEY_DIGEST_BYTES];
};

/* In memory of the request; kind and mode of the key are set. Fills in its id, created_ms, last4, secret and digest. */
void key_grant_mint(struct key_grant *grant, struct exchange *exchange);
/* After the store has answered, the request being held. True: the key is stored; answer now, with the secret: the hold
 * is released when the answer has been delivered, or the key was handed over to be revoked. False: the key is not, or
 * must not be; answer with a refusal and release. */
MUST_CHECK bool key_grant_stored(struct key_grant *grant, enum store_result result);
