/* Password and code of a user, at login and at step-up: the same work whether the user exists, and whatever is wrong,
 * so that time tells nothing. */
#pragma once
#include "exchange_internal.h"
#include "store/account_store.h"

/* USER_CHECK_WRONG_CODE: the password is right, which is told to nobody and counted. */
enum user_check_result {
    USER_CHECK_WRONG,
    USER_CHECK_WRONG_CODE,
    USER_CHECK_RIGHT,
    USER_CHECK_OVERLOADED,
    USER_CHECK_CANCELLED
};

struct user_check {
    struct exchange *exchange;
    struct text password, totp; /* of the exchange's body */
    bool known;                 /* user is set */
    struct user_record user;    /* wiped when the request is freed */
    int64_t begun_ms;           /* the code is judged by this moment, however long the password waits for its turn */
    int64_t totp_step;          /* set with USER_CHECK_RIGHT: the code's step, not yet taken */
    void (*done)(void *arg, enum user_check_result result);
    void *arg;
};

/* Exactly 6 ASCII digits. */
MUST_CHECK bool user_check_code_has_form(struct text totp);
/* exchange, password and totp are set. user NULL: there is none of that name. done runs exactly once, later. */
void user_check_begin(struct user_check *check, const struct user_record *user, const struct password_turn *turn,
                      void (*done)(void *arg, enum user_check_result result), void *arg);
/* Log and metrics of what a wrong one brought about: a closed sign-in, a lock. */
void user_check_report_failure(const struct user_check *check, const struct login_failure *failure);
/* Answers when a check came to no verdict. */
void user_check_refuse(struct user_check *check, enum user_check_result result);
