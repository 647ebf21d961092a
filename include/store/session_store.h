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
    int64_t ends_ms;            /* the absolute limit that it was made with */
    int64_t attacked_ms;        /* by session_store_create() alone: when guesses last closed sign-in by this email to
                                 * unknown browsers, if that was not told before; else 0 */
    uint32_t retry_after_s;     /* with STORE_REFUSED alone */
    int64_t totp_step;          /* with STORE_CONFLICT alone: the last one that was used */
};
/* session: with STORE_OK, with STORE_REFUSED for its retry_after_s and with STORE_CONFLICT for its totp_step; else
 * NULL.
 */
typedef void session_found(void *arg, enum store_result result, const struct session_record *session);

/* An attempt to sign in or to step up. It is reserved before its password is hashed, and ends in exactly one of
 * session_store_create() or session_store_step_up() with STORE_OK (right), session_store_fail_login() (wrong) and
 * session_store_give_back() (no verdict). Only wrong ones are counted. What ends after a limit was reached is refused,
 * right or wrong: so parallel guesses cannot pass a limit, and parallel right ones do not reach it. */
struct login_attempt {
    struct text id;       /* unlike any other that is under way: the request's id */
    struct text counters; /* what it counts for: "<rule>:<keyed tag>,…", rules as in prelude.lua */
};
/* What the browser that it came from says it is. */
struct login_browser {
    struct text digest;   /* keyed, in hex; at the user if he signed in from there before */
    struct text counters; /* in place of the attempt's if so */
};

struct login_begin {
    const struct user_record *user; /* STORE_OK; NULL: unknown (do the same work all the same) */
    bool browser_is_known;          /* from now on the browser's counters are the attempt's */
    bool is_locked;                 /* wrong codes behind a right password: nothing is right for this user */
    uint32_t retry_after_s;         /* STORE_REFUSED: for how long to wait */
    bool throttled_is_known;        /* STORE_REFUSED: the email is that of the user `throttled` */
    struct id throttled;
};
/* STORE_OK: go on; the attempt is reserved. STORE_REFUSED: throttled. begin is there always. */
typedef void login_begun(void *arg, enum store_result result, const struct login_begin *begin);
/* browser NULL: none said. */
void session_store_begin_login(struct store *store, struct text email, const struct login_attempt *attempt,
                               const struct login_browser *browser, login_begun *done, void *arg);
/* The same for step-up, for the session's user. */
void session_store_begin_step_up(struct store *store, const struct id *user, const struct login_attempt *attempt,
                                 login_begun *done, void *arg);

struct login_failure {
    bool closes;            /* with this one, sign-in by the email is closed to browsers that are not known */
    bool locks;             /* with this one the user is locked */
    uint32_t retry_after_s; /* STORE_REFUSED */
};
typedef void login_failed(void *arg, enum store_result result, const struct login_failure *failure);
/* Counts and records that an attempt was wrong (event login.failed, or step_up.failed where source has an
 * actor; user NULL: no such email, the same work).
 * only_code_wrong: behind a right password; a hundred in a row lock the user. STORE_REFUSED: it was not counted, since
 * a limit was reached since it began; whether it was wrong must not be told. */
void session_store_fail_login(struct store *store, const struct id *user, const struct login_attempt *attempt,
                              bool only_code_wrong, const struct audit_source *source, login_failed *done, void *arg);
/* Nobody waits for it. */
void session_store_give_back(struct store *store, const struct login_attempt *attempt);

/* Takes the TOTP step (STORE_CONFLICT: it, or a later one, was used), makes the session, ends the one that it came with
 * and the oldest beyond 20. STORE_NOT_FOUND: no such user, or not as verified any more. STORE_REFUSED: throttled
 * meanwhile, or retry_after_s is 0: the user is locked. */
struct session_start {
    struct id user, account; /* his account */
    int64_t totp_step;
    const uint8_t *token_digest; /* 32 bytes */
    const char *sid;
    struct login_attempt attempt;
    struct text browser_digest;      /* the browser that is known from now on; empty: none */
    const uint8_t *presented_digest; /* 32 bytes: the session that the sign-in came with; NULL: none */
    /* What password and code were verified against: where either was reset since, the session would outlive the reset.
     * NULL: not compared. */
    const struct user_record *verified;
};
void session_store_create(struct store *store, const struct session_start *start, const struct session_limits *limits,
                          const struct audit_source *source, session_found *done, void *arg);

/* Loads a live session and notes its use. STORE_NOT_FOUND: unknown or over, or made or altered by nobody who knows a
 * master key. */
void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        session_found *done, void *arg);
/* Takes the TOTP step (STORE_CONFLICT, STORE_REFUSED as above), gives the session a new token (the old one is dead at
 * once) and a fresh step-up. STORE_NOT_FOUND: the session has ended meanwhile. session: as it was
 * loaded, by the old digest. */
void session_store_step_up(struct store *store, const struct session_record *session, const uint8_t old_digest[32],
                           const uint8_t new_digest[32], int64_t totp_step, const struct login_attempt *attempt,
                           const struct session_limits *limits, const struct audit_source *source, session_found *done,
                           void *arg);
void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_source *source,
                       store_done *done, void *arg);
