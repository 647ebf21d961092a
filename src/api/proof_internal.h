/* A person in a session gives password and code again: for a step-up, a new password, a new authenticator. Each is an
 * attempt, counted before the password is hashed, by session and by user, apart from strangers' failures: those must
 * not stop people who are signed in. Lives in the request's arena. */
#pragma once
#include "attempt_internal.h"
#include "user_check_internal.h"

struct proof {
    struct exchange *exchange;
    const char *throttled_line, *refused_line; /* for the log; set before proof_begin() */
    void (*given)(struct proof *proof);        /* likewise: both were right; the caller's script decides */
    struct attempt_counters counters;
    struct login_attempt attempt;
    struct password_turn turn;
    bool is_locked;
    struct user_check check;
    struct token token; /* the session's new one; wiped when the request is freed */
};

/* Reads password and code from the body, by other fields than `password` and `totp` if fields is not NULL; their target
 * begins with the proof. False if the exchange has been refused. */
MUST_CHECK bool proof_read(struct proof *proof, const struct json_field *fields, size_t count);
/* Holds the request. The proof ends in exactly one of: the caller's reply after its script succeeded, proof_finish(),
 * proof_refuse(), proof_give_up(). The caller releases the request after its own reply; the others do so themselves. */
void proof_begin(struct proof *proof);
/* For the caller's script. Points into the proof. */
struct session_proof proof_of_session(const struct proof *proof);
/* The caller's script did not succeed. session: its reply, if result is STORE_REFUSED or STORE_CONFLICT. */
void proof_refuse(struct proof *proof, enum store_result result, const struct session_record *session);
/* The proof was right, but its change cannot be made: refuses the exchange with that problem, and counts nothing. */
void proof_give_up(struct proof *proof, struct problem problem);
void proof_log(const struct proof *proof, const char *message);
/* For scripts that give the session a new token, so that a stolen copy of the old one gains nothing: draws it, and ends
 * the proof with the new cookie and the step-up, or by proof_refuse(). message: for the log. */
void proof_draw_token(struct proof *proof, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
void proof_finish(struct proof *proof, enum store_result result, const struct session_record *session,
                  const char *message);
