/* How the revocation of a key took effect: what its receipt certifies (core/receipt.h). */
#pragma once
#include "store/key_store.h"

/* Valid during the call. */
struct key_revocation {
    struct key_record key;
    struct text store; /* the store's id */
    struct id event;   /* of the trail, which may have dropped it since; empty: not known */
    /* By Redis' clock, read after the barrier was over: from then on no node accepted the key. Never before
     * key.revoked_ms. */
    int64_t effective_ms;
    int64_t nodes;      /* sessions of nodes that were registered when the key was revoked */
    int64_t waited_for; /* those of them that did not acknowledge, so that their leases had to expire */
};
typedef void key_revocation_found(void *arg, enum store_result result, const struct key_revocation *revocation);

/* STORE_NOT_FOUND: no such key, it is active, or the view hides it. If nobody has noted how the revocation took effect,
 * this runs its barrier again, as key_store_revoke() does for a revoked key, and notes that later end. source: of
 * whoever asks. STORE_UNKNOWN: the barrier failed; call again. */
void key_store_revocation(struct store *store, const struct key_view *view, const struct id *id,
                          const struct audit_source *source, key_revocation_found *done, void *arg);
