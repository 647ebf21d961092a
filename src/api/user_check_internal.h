/* Checks a user's password and code, at login, recovery and step-up. The work is the same whether or not the user
 * exists and whichever part is wrong, so that timing reveals nothing. */
#pragma once
#include "exchange_internal.h"
#include "records/account_store.h"

/* USER_CHECK_WRONG_CODE: the password was right. This is counted, but the client is not told. */
enum user_check_result {
    USER_CHECK_WRONG,
    USER_CHECK_WRONG_CODE,
    USER_CHECK_RIGHT,
    USER_CHECK_OVERLOADED,
    USER_CHECK_CANCELLED
};

struct user_check {
    struct exchange *exchange;
    struct text password, totp; /* point into the exchange's body */
    bool by_recovery_code;      /* a recovery code instead of totp */
    bool recovery_code_fits;    /* it is one of the user's */
    bool known;                 /* user is set */
    struct user_record user;    /* wiped when the request is freed */
    int64_t begun_ms;           /* the code is checked as of this time, however long the password waits for its turn */
    int64_t totp_step;          /* with USER_CHECK_RIGHT: the code's time step, not yet marked as used */
    void (*done)(void *arg, enum user_check_result result);
    void *arg;
};

/* Exactly 6 ASCII digits. False: the exchange has been refused. */
MUST_CHECK bool user_check_read_code(struct exchange *exchange, struct text totp);
/* Sets the user. Set exchange before. */
void user_check_know(struct user_check *check, const struct user_record *user);
/* Set exchange, password and totp before. user: NULL if there is no such user. done runs exactly once, later. */
void user_check_begin(struct user_check *check, const struct user_record *user, const struct password_turn *turn,
                      void (*done)(void *arg, enum user_check_result result), void *arg);
/* Logs and counts the consequences of a wrong attempt: a closed sign-in, a lock. */
void user_check_report_failure(const struct user_check *check, const struct login_failure *failure);
/* Refuses the exchange because there was no place for a password. is_ending: the node ends, instead of being busy. */
void user_check_refuse(struct exchange *exchange, bool is_ending);
