/* Console sessions and sign-in attempts in Redis. Times are Redis' own, so nodes agree on them. */
#pragma once
#include "core/token.h"
#include "core/user_agent.h"
#include "records/account_store.h"
#include "engine/partitions.h"

/* Notices for a user at the beginning of a session and while it lasts, so that they notice somebody else. */
enum { NOTICES_BROWSERS_MAX = 5, SESSION_IP_BYTES = 64 };
struct session_notices {
    int64_t last_sign_in_ms; /* the sign-in before this session's; 0: none */
    char last_sign_in_ip[SESSION_IP_BYTES];
    int64_t failed_sign_ins; /* since then */
    int64_t attacked_ms;     /* guesses closed sign-in to unknown browsers, unless an earlier session said so; or 0 */
    int64_t recovered_ms;    /* a recovery code was used since the last sign-in from this browser; or 0 */
    size_t browser_count;
    struct new_browser {
        int64_t at_ms;
        char ip[SESSION_IP_BYTES], name[BROWSER_NAME_BYTES];
    } browsers[NOTICES_BROWSERS_MAX]; /* that signed in for the first time since then, newest first */
};

/* attacked_ms: when guesses last closed this email's sign-in to unknown browsers, unless reported before; or 0. */
struct session_record {
    char sid[ID_TEXT_BYTES]; /* constant across rotations of the token; the CSRF token is derived from it */
    struct user_record user; /* password_hash and totp_sealed are empty */
    int64_t created_ms;
    int64_t expires_ms;                    /* the absolute limit */
    int64_t step_up_expires_ms;            /* 0: none, or expired */
    int64_t ends_ms;                       /* the absolute limit in force when the session was created */
    int64_t attacked_ms;                   /* from session_store_create() only; see above */
    uint32_t retry_after_s;                /* with STORE_REFUSED only */
    int64_t totp_step;                     /* with STORE_CONFLICT only: the last step used */
    bool password_expired;                 /* the user must change the password before anything else */
    const struct session_notices *notices; /* from session_store_create() only, valid during the call */
};
/* session is set with STORE_OK, with STORE_REFUSED (retry_after_s only) and with STORE_CONFLICT (totp_step only); else
 * NULL. */
typedef void session_found(void *arg, enum store_result result, const struct session_record *session);

/* Strangers' writes count for the IPv4 /24 or IPv6 /48 that the tag of an attempt's last counter begins with. */
enum { THROTTLE_NETWORK_CHARS = 16 };

/* An attempt to sign in or to step up. It is reserved before the password is hashed, and ends in exactly one of:
 * session_store_create() or session_store_step_up() with STORE_OK (right), session_store_fail_login() (wrong),
 * session_store_give_back() (no verdict). Only wrong attempts count. An attempt that ends after a limit was reached is
 * refused, right or wrong. So guesses in parallel cannot exceed a limit, and right attempts in parallel never reach
 * one. The counters may lie in several partitions: a wrong attempt is answered after all of them have counted it, a
 * right one after all were checked. */
struct login_attempt {
    struct text id; /* unique among attempts under way: the request's id */
    /* The counters it belongs to: "<rule>:<keyed tag>,…"; the rules are in the prelude. The partition of the first one
     * is judged last: put the one there that closes something, so that it closes only if all others have counted. */
    struct text counters;
    struct store *home;  /* the partition of the user; of the email if it has none */
    bool counts_at_home; /* the counters lie in home: a known browser's, or a step-up's. Else each by its tag */
    int64_t forgiven_ms; /* when an operator cleared what was counted against the user; 0: never */
};
/* The browser that the attempt came from, by the token that it sent. */
struct login_browser {
    struct text digest;   /* keyed digest in hex; stored with the user if they signed in from this browser before */
    struct text counters; /* if so, these replace the attempt's counters */
};

struct login_begin {
    const struct user_record *user; /* with STORE_OK; NULL: no such user (the caller does the same work) */
    struct login_attempt attempt;   /* with STORE_OK: end this one */
    bool browser_is_known;          /* the browser's counters are now the attempt's */
    bool is_locked;          /* too many wrong codes with the right password: every attempt of this user is refused */
    bool recovery_code_fits; /* the recovery code is one of the user's */
    uint32_t retry_after_s;  /* with STORE_REFUSED: how long to wait */
    bool throttled_is_known; /* with STORE_REFUSED: the email belongs to the user `throttled` */
    struct id throttled;
};
/* STORE_OK: the attempt is reserved. STORE_REFUSED: throttled. begin is never NULL. */
typedef void login_begun(void *arg, enum store_result result, const struct login_begin *begin);
/* Of the attempt, set id and counters. browser: NULL if the request named none. recovery_code: its digests
 * (core/recovery_code.h); NULL: the attempt has none. Texts and recovery_code must live until done. Takes as many
 * calls, one after another, whether the email has a user or not. */
void session_store_begin_login(const struct partitions *partitions, struct text email,
                               const struct login_attempt *attempt, const struct login_browser *browser,
                               const struct token_digests *recovery_code, login_begun *done, void *arg);
/* The same for a step-up by the session's user, whose partition the store is. */
void session_store_begin_step_up(struct store *store, const struct id *user, const struct login_attempt *attempt,
                                 login_begun *done, void *arg);

struct login_failure {
    bool closes;            /* this failure closed sign-in by the email to unknown browsers */
    bool locks;             /* this failure locked the user */
    uint32_t retry_after_s; /* STORE_REFUSED */
};
typedef void login_failed(void *arg, enum store_result result, const struct login_failure *failure);
/* Counts a wrong attempt and writes its event: step_up.failed if source has an actor, else login.failed. user NULL: no
 * such email; the scripts do the same work. only_code_wrong: the password was right; 100 of these since the last
 * success lock the user. STORE_REFUSED: a limit was reached meanwhile, so the attempt has no event, and the caller
 * must not reveal that it was wrong. user and all texts must live until done. */
void session_store_fail_login(const struct partitions *partitions, const struct id *user,
                              const struct login_attempt *attempt, bool only_code_wrong,
                              const struct audit_source *source, login_failed *done, void *arg);
/* Releases a reservation. Fire and forget: a lost one expires within a minute. */
void session_store_give_back(const struct partitions *partitions, const struct login_attempt *attempt);

/* Takes the TOTP step, creates the session, and ends both the session that the sign-in came with and the oldest ones
 * beyond 20. STORE_CONFLICT: this TOTP step or a later one was used. STORE_NOT_FOUND: no such user, or password or TOTP
 * secret changed since they were verified. STORE_REFUSED: throttled meanwhile, or locked (retry_after_s is 0). */
struct session_start {
    struct id user, account; /* the user's account */
    int64_t totp_step;
    const uint8_t *token_digest; /* 32 bytes */
    const char *sid;
    struct login_attempt attempt;
    struct text browser_digest;      /* known from now on; empty: none */
    const char *browser;             /* its name, from user_agent_name(); NULL: none */
    const uint8_t *presented_digest; /* 32 bytes: the session that the sign-in came with, anyone's; NULL: none */
    /* The password hash and TOTP secret that were verified. If either was reset since, the session is refused;
     * otherwise it would outlive the reset. NULL: not compared. */
    const struct user_record *verified;
};
/* The structs are copied; what they point to must live until done. */
void session_store_create(const struct partitions *partitions, const struct session_start *start,
                          const struct session_limits *limits, const struct audit_source *source, session_found *done,
                          void *arg);

/* Loads a live session and notes its use. ip: of the client, kept with the session; empty: keeps the last one.
 * STORE_NOT_FOUND: no such session, it is over, or its MAC or its user's is wrong. */
void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        struct text ip, session_found *done, void *arg);
/* notices: set with STORE_OK only. */
typedef void notices_read(void *arg, enum store_result result, const struct session_notices *notices);
/* The notices that the session's user should know by now. */
void session_store_read_notices(struct store *store, const struct id *user, const uint8_t token_digest[32],
                                notices_read *done, void *arg);

/* As session_store_stop(), each change below and session_store_create() ends with STORE_OK only when what it ended is
 * over at every node; STORE_UNKNOWN: it may be done. */

/* A session's user has given password and code again, and both were right. The change that it allows takes the code's
 * step and ends the attempt in its script. Each can end with STORE_CONFLICT or STORE_REFUSED, as above, or with
 * STORE_NOT_FOUND: the session has ended, or what was proven has changed meanwhile. Each seals a time of Redis' clock,
 * so call it behind store_know_clock(). */
struct session_proof {
    const struct session_record *session; /* as loaded */
    const uint8_t *digest;                /* 32 bytes: under which it was loaded */
    int64_t totp_step;
    struct login_attempt attempt;
    const struct session_limits *limits;
};
/* Gives the session a new token (the old one stops working at once) and a fresh step-up. */
void session_store_step_up(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                           const struct audit_source *source, session_found *done, void *arg);
/* Does so, and replaces the password hash that was verified. All other sessions of the user end, and so does an
 * authenticator that waits for its confirmation. Of several changes at once one succeeds. Writes event
 * user.password_changed. */
void session_store_change_password(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                                   const char *verified_hash, const char *new_hash, const struct audit_source *source,
                                   session_found *done, void *arg);
void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_source *source,
                       store_done *done, void *arg);

/* How lists name a session: "sess_" and its sid. Knowing the name allows nothing. */
#define SESSION_PREFIX "sess_"

enum { SESSION_LIST_USERS_MAX = 20 }; /* in one call */

struct session_row {
    char sid[ID_TEXT_BYTES];
    struct id user, account;
    char email[EMAIL_MAX_BYTES + 1];
    int64_t created_ms, seen_ms, step_up_ms; /* step_up_ms: 0 for none */
    int64_t ends_ms;                         /* unless it is used before */
    char ip[SESSION_IP_BYTES];               /* of its last use, to within 10 s; empty: unknown */
    char browser[BROWSER_NAME_BYTES];        /* at its sign-in; empty: unknown */
};
/* Sessions that have not ended, in no order. sessions is valid during the call. */
typedef void sessions_listed(void *arg, enum store_result result, const struct session_row *sessions, size_t count);
void session_store_list(struct store *store, const struct id *users, size_t user_count, sessions_listed *done,
                        void *arg);
/* Ends the user's session of that sid, or all of them (empty), except the one with the digest `except` (NULL: none).
 * STORE_OK: no node accepts them any more. Nodes read sessions from Redis for each request, so the change itself ends
 * them; after a failover it is answered once every lease that the old master granted is over (rule 10 of
 * src/lease/README.md). STORE_NOT_FOUND: no such user or session. STORE_UNKNOWN: nothing is promised; call again. */
void session_store_stop(struct store *store, const struct id *user, struct text sid, const uint8_t *except,
                        const struct audit_source *source, store_counted *done, void *arg);
