/* Password and code of a user, at login and at step-up: the same work whether the user exists, and whatever is wrong,
 * so that time tells nothing. */
#pragma once
#include "call_internal.h"
#include "store/account_store.h"

enum proof_result { PROOF_RIGHT, PROOF_WRONG, PROOF_OVERLOADED, PROOF_CANCELLED };

struct proof {
    struct call *call;
    struct text password, totp; /* of the call's body */
    bool known;                 /* user is set */
    struct user_record user;    /* wiped when the request is freed */
    int64_t begun_ms;           /* the code is judged by this moment, however long the password waits for its turn */
    int64_t totp_step;          /* set with PROOF_RIGHT: the code's step, not yet taken */
    void (*done)(void *arg, enum proof_result result);
    void *arg;
};

/* Exactly 6 ASCII digits. */
MUST_CHECK bool proof_code_has_form(struct text totp);
/* call, password and totp are set. user NULL: there is none of that name. done runs exactly once, later. */
void proof_begin(struct proof *proof, const struct user_record *user, void (*done)(void *arg, enum proof_result result),
                 void *arg);
/* Answers where a proof came to no verdict. */
void proof_refuse(struct proof *proof, enum proof_result result);
