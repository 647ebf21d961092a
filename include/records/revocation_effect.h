/* How the revocation of a key, or the suspension of an account, took effect: what a receipt certifies. */
#pragma once
#include "core/keyring.h"
#include "records/key_store.h"

/* Valid during the call. */
struct revocation_effect {
    struct id subject; /* the key, or the account */
    int64_t revoked_ms;
    struct text store; /* the store's id */
    struct id event;   /* of the trail, which may have dropped it since; empty: not known */
    /* By Redis' clock, when the barrier was over: from then on no node accepted the key. Never before revoked_ms. */
    int64_t effective_ms;
    int64_t nodes;      /* sessions of nodes that were registered when it was revoked */
    int64_t waited_for; /* those of them that did not acknowledge, so that their leases had to expire */
};
typedef void revocation_effect_found(void *arg, enum store_result result, const struct revocation_effect *effect);

/* STORE_NOT_FOUND: no such key, it is active, or the view hides it. If nobody has noted how the revocation took effect,
 * this runs its barrier again, as key_store_revoke() does for a revoked key, and notes that later end. source: of
 * whoever asks. STORE_UNKNOWN: the barrier failed; call again. */
void key_store_revocation(struct store *store, const struct key_view *view, const struct id *id,
                          const struct audit_source *source, revocation_effect_found *done, void *arg);
/* Of an account that is suspended or closed. STORE_NOT_FOUND: there is none, or it is active. STORE_UNKNOWN: nobody has
 * noted how that took effect; to suspend the account again notes it. */
void account_store_suspension(struct store *store, const struct id *account, revocation_effect_found *done, void *arg);

/* Notes leave a while after revocations are answered. Sends those that wait, and returns whether Redis has yet to reply
 * to any: whoever ends at once runs the loop until it has. */
bool revocation_effect_is_noting(struct store *store);

/* Appends the receipt (core/receipt.h), signed with the current master key's key. issuer: the public origin. */
void revocation_effect_certify(const struct revocation_effect *effect, struct text issuer,
                               const struct keyring *keyring, struct buf *out);
