/* New authenticators and recovery codes in Redis. A new authenticator waits for ten minutes until a code of it confirms
 * it; until then the old one counts. One waits at a time for each user: a later one replaces it. */
#pragma once
#include "core/token.h"
#include "records/session_store.h"

/* A TOTP secret, sealed for its user (keyring_seal() bound to the user's id). */
struct sealed_totp {
    uint8_t bytes[TOTP_SEALED_BYTES];
};

/* Keeps a new authenticator for the session of the proof. The results are those of struct session_proof; session is
 * NULL with STORE_OK. */
void factor_store_begin_totp(struct store *store, const struct session_proof *proof, const struct sealed_totp *totp,
                             session_found *done, void *arg);

enum { WAITING_BY_BYTES = 2 * KEYRING_DIGEST_BYTES + 1 };
struct waiting_totp {
    struct user_record user; /* password_hash and totp_sealed are empty */
    struct sealed_totp totp;
    char by[WAITING_BY_BYTES]; /* who began it: for factor_store_confirm_totp() */
};
/* waiting: set with STORE_OK only. STORE_NOT_FOUND: none waits, or it was tried too often. */
typedef void totp_waits(void *arg, enum store_result result, const struct waiting_totp *waiting);
/* The one that the session began, and counts a try. */
void factor_store_find_totp(struct store *store, const struct session_record *session, totp_waits *done, void *arg);
/* The one that a recovery began, by its ticket. */
void factor_store_find_recovery(const struct partitions *partitions, const struct token_digests *ticket,
                                totp_waits *done, void *arg);

/* Replaces the user's authenticator by the one that waits. step: of the code that confirmed it, which is taken. All
 * sessions of the user end, except the one with the digest `session` (NULL: a recovery, whose code is spent now).
 * STORE_OK only when that is in effect everywhere, as for session_store_stop(). STORE_NOT_FOUND: it no longer waits, or
 * its recovery code was spent. Writes event user.totp_changed or user.recovery_used. */
void factor_store_confirm_totp(struct store *store, const struct waiting_totp *waiting, int64_t step,
                               const uint8_t *session, const struct audit_source *source, store_done *done, void *arg);

/* Recovery codes: one replaces a lost authenticator, together with the password. */

struct recovery_start {
    const struct user_record *user; /* as verified */
    struct login_attempt attempt;
    const struct token_digests *code; /* that fits */
    const uint8_t *ticket;            /* 32 bytes: the digest of the ticket that names this recovery */
    const struct sealed_totp *totp;
};
/* Ends the attempt and keeps a new authenticator. start is copied; what it points to must live until done.
 * STORE_NOT_FOUND: the password has changed or the code was spent since they were verified. STORE_REFUSED: throttled
 * meanwhile, or locked (retry_after_s is 0). */
void factor_store_begin_recovery(const struct partitions *partitions, const struct recovery_start *start,
                                 store_limited *done, void *arg);

enum { RECOVERY_CODES = 10 };
/* Replaces the user's recovery codes. The credential of the source must still be valid, with its step-up. */
void factor_store_set_recovery_codes(struct store *store, const struct id *account,
                                     const uint8_t (*digests)[KEYRING_DIGEST_BYTES], const struct audit_source *source,
                                     store_done *done, void *arg);
/* made_ms: when the codes were made; 0: never. */
typedef void recovery_codes_left(void *arg, enum store_result result, int64_t count, int64_t made_ms);
void factor_store_count_recovery_codes(struct store *store, const struct id *user, recovery_codes_left *done,
                                       void *arg);
