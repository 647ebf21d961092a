/* Attempts of people without a session: to sign in, or to recover. Counted before the password is hashed, judged with
 * the same work and the same answer whether the email exists or which part is wrong, and counted as failures alike.
 * Lives in the request's arena. */
#pragma once
#include "attempt_internal.h"
#include "user_check_internal.h"

struct sign_in {
    struct exchange *exchange;

    /* Set before sign_in_begin(), after sign_in_read(). */
    const char *throttled_line, *refused_line; /* for the log */
    const struct token_digests *recovery_code; /* judged instead of a code; NULL: none */
    void (*named)(struct sign_in *op);         /* the email is known, before anything is judged; NULL: nobody asks */
    void (*proven)(struct sign_in *op);        /* all was right; the caller's script decides. Exactly once, or never */

    struct text written;             /* the email in the body */
    char email[EMAIL_MAX_BYTES + 1]; /* as written at first; from `named` on as the user has it */
    char meant[EMAIL_MAX_BYTES + 1];
    struct attempt_counters of_strangers, of_browser;
    struct login_attempt attempt;
    /* Of the cookie that came with the request, or else of the one in the response. */
    char browser_digest[2 * KEYRING_DIGEST_BYTES + 1];
    struct password_turn turn;
    bool is_locked, is_disabled;
    struct user_check check;
    struct token browser; /* wiped when the request is freed */
};

/* Reads email, password and what else is judged from the body, by fields whose target is the sign-in or begins with it,
 * and checks the form of the email: a 400 must not reveal which emails exist. False if the exchange has been refused.
 */
MUST_CHECK bool sign_in_read(struct sign_in *op, const struct json_field *fields, size_t count);
/* Holds the request. Every attempt ends in exactly one of: the caller's reply after its script succeeded,
 * sign_in_fail(), sign_in_refuse(). The caller releases the request after its own reply; the other two do so
 * themselves. */
void sign_in_begin(struct sign_in *op);
/* For a user whose password and code were just set: nothing is left to judge, so nothing is counted. user: with
 * password_hash and totp_sealed, as stored; copied. The request is held already. */
void sign_in_begin_proven(struct sign_in *op, const struct user_record *user, int64_t totp_step);
/* Makes the browser one that has a cookie. */
void sign_in_know_browser(struct sign_in *op);
/* Counts a wrong attempt, then refuses the exchange. */
void sign_in_fail(struct sign_in *op, bool only_code_wrong);
/* Gives the attempt back, because it was not judged. retry_after_s: with STORE_REFUSED. */
void sign_in_refuse(struct sign_in *op, enum store_result result, uint32_t retry_after_s);
