/* Password and code of a user, at login and at step-up: the same work whether the user exists, and whatever is wrong,
 * so that time tells nothing. */
#pragma once
#include "exchange_internal.h"
#include "store/account_store.h"

/* PROOF_WRONG_CODE: the password is right, which is told to nobody and counted. */
enum proof_result { PROOF_WRONG, PROOF_WRONG_CODE, PROOF_RIGHT, PROOF_OVERLOADED, PROOF_CANCELLED };

struct proof {
    struct exchange *exchange;
    struct text password, totp; /* of the exchange's body */
    bool known;                 /* user is set */
    struct user_record user;    /* wiped when the request is freed */
    int64_t begun_ms;           /* the code is judged by this moment, however long the password waits for its turn */
    int64_t totp_step;          /* set with PROOF_RIGHT: the code's step, not yet taken */
    void (*done)(void *arg, enum proof_result result);
    void *arg;
};

/* Exactly 6 ASCII digits. */
MUST_CHECK bool proof_code_has_form(struct text totp);
/* exchange, password and totp are set. user NULL: there is none of that name. done runs exactly once, later. */
void proof_begin(struct proof *proof, const struct user_record *user, const struct password_turn *turn,
                 void (*done)(void *arg, enum proof_result result), void *arg);
/* Log and metrics of what a wrong one brought about: a closed sign-in, a lock. */
void proof_tell_failure(const struct proof *proof, const struct login_failure *failure);
/* Answers where a proof came to no verdict. */
void proof_refuse(struct proof *proof, enum proof_result result);
