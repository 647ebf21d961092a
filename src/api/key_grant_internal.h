/* A new key on its way to its owner: drawn, stored by its digest, shown once. If a key was stored, or may have been,
 * and the response was not delivered, the key is revoked at once, because nobody has its secret. */
#pragma once
#include "exchange_internal.h"
#include "core/secret.h"
#include "records/key_store.h"

struct key_grant {
    struct exchange *exchange;
    struct key_record key;
    struct secret secret; /* wiped when the request is freed */
    uint8_t digest[KEY_DIGEST_BYTES];
    void (*delivered)(struct key_grant *grant); /* runs when the secret was delivered; NULL: nothing */
};

/* grant: in the request's arena. Fills in id and created_ms of the key, whose kind must be set. */
void key_grant_begin(struct key_grant *grant, struct exchange *exchange);
/* Fills in secret, digest and last4 of the key, whose kind, mode and account must be set. */
void key_grant_draw(struct key_grant *grant);
/* Call when the store has answered, with the request held. True: the key is stored, so reply now with the secret; the
 * hold is released once the response is delivered, or the key is queued for revocation. False: the key is not stored,
 * or is being revoked; refuse and release. */
MUST_CHECK bool key_grant_stored(struct key_grant *grant, enum store_result result);
/* After that: 201 with the key object and the secret of a new API key. */
void key_grant_reply(struct key_grant *grant);

/* In key_routes.c. What the principal may see, of the kind of keys that the route is about: a test key sees only test
 * keys; a live key and a user see both modes. */
struct key_view key_view_of(const struct exchange *exchange);
/* A key grants only what it holds itself, unless --grant-policy is any; a person, what the role may. A decoy, which no
 * node accepts, may have any scopes. False if the exchange has been refused. */
MUST_CHECK bool key_may_be_granted(struct exchange *exchange, const struct key_record *key, bool is_decoy);
/* exchange_source() for a key with these scopes: the role that they take must still be the user's when the key is made.
 */
struct audit_source key_grant_source(const struct exchange *exchange, scope_set scopes);
/* False, and the exchange refused, if the principal lacks one of these scopes. param is what asked for them. */
MUST_CHECK bool scopes_may_be_granted(struct exchange *exchange, scope_set scopes, struct text param);
