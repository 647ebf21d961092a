/* Console sessions and login attempts in Redis. Times are Redis' own, so that nodes agree. */
#pragma once
#include "store/account_store.h"

struct session_limits {
    int64_t idle_ms;
    int64_t absolute_ms;
    int64_t step_up_ms;
};

struct session_record {
    char sid[ID_TEXT_BYTES]; /* stable name of the session, across rotations of its token; the CSRF token is made of it
                              */
    struct user_record user; /* password_hash and totp_sealed only where a verb says so */
    int64_t created_ms;
    int64_t expires_ms;         /* the absolute limit */
    int64_t step_up_expires_ms; /* 0: none, or over */
};
typedef void session_found(void *arg, enum store_result result, const struct session_record *session);

/* One attempt to log in, counted against email and address before any password is hashed, so that parallel attempts
 * cannot pass the limit. STORE_OK: go on; user is NULL for an unknown email (do the same work all the same).
 * STORE_REFUSED: throttled, retry_after_s says for how long. email_tag, ip_tag: keyed digests in hex. */
typedef void login_begun(void *arg, enum store_result result, const struct user_record *user, uint32_t retry_after_s);
void session_store_begin_login(struct store *store, struct text email, struct text email_tag, struct text ip_tag,
                               login_begun *done, void *arg);
/* The same counting for step-up, for the session's user. */
void session_store_begin_step_up(struct store *store, const struct id *user, struct text user_tag, struct text ip_tag,
                                 login_begun *done, void *arg);

/* Takes the TOTP step (STORE_CONFLICT: it, or a later one, was used), forgives the attempt, makes the session.
 * STORE_REFUSED: no such user, or not as verified any more. */
struct session_start {
    struct id user;
    int64_t totp_step;
    const uint8_t *token_digest; /* 32 bytes */
    const char *sid;
    struct text email_tag, ip_tag;
    /* What password and code were verified against: where either was reset since, the session would outlive the reset.
     * NULL: not compared. */
    const struct user_record *verified;
};
void session_store_create(struct store *store, const struct session_start *start, const struct session_limits *limits,
                          const struct audit_origin *origin, session_found *done, void *arg);
/* Records that an attempt failed (event login.failed; user NULL where the email is unknown: no account, no event). */
void session_store_fail_login(struct store *store, const struct id *user, const struct audit_origin *origin,
                              store_done *done, void *arg);

/* Loads a live session and notes its use. STORE_NOT_FOUND: unknown or over. */
void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        session_found *done, void *arg);
/* Takes the TOTP step (STORE_CONFLICT as above), gives the session a new token (the old one is dead at once) and a
 * fresh step-up. STORE_NOT_FOUND: the session has ended meanwhile. */
void session_store_step_up(struct store *store, const uint8_t old_digest[32], const uint8_t new_digest[32],
                           int64_t totp_step, struct text user_tag, struct text ip_tag,
                           const struct session_limits *limits, const struct audit_origin *origin, session_found *done,
                           void *arg);
void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_origin *origin,
                       store_done *done, void *arg);
