/* A new authenticator: made, shown once, sealed for the store. */
#pragma once
#include "exchange_internal.h"
#include "records/factor_store.h"

/* Makes a secret for the user and seals it. ret_secret is in the request's arena, and is wiped when the request is
 * freed. */
void new_totp_make(struct exchange *exchange, const struct id *user, struct totp_secret *ret_secret,
                   struct sealed_totp *ret_sealed);

/* Confirms an authenticator that waits, by a code of it. Lives in the request's arena. */
struct new_totp_confirm {
    struct exchange *exchange;
    struct text code;       /* has the form of one */
    const uint8_t *session; /* digest of the session that stays; NULL: a recovery */
    struct audit_source source;
    void (*done)(struct exchange *exchange, const struct id *account, const struct id *user); /* before the 204 */
    struct waiting_totp waiting;
};
/* Goes on from a find of the store, whose arg is a struct new_totp_confirm; the request is held, and `missing` is set.
 */
totp_waits new_totp_found;
