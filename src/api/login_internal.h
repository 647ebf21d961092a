/* Signing in a user whose password and code were just set. */
#pragma once
#include "exchange_internal.h"
#include "records/account_store.h"

/* Creates a session and replies as POST /v1/auth/login does. user: with password_hash and totp_sealed, as stored;
 * copied. totp_step: of the code that was right. The request is held, and released when it is answered. */
void login_enter(struct exchange *exchange, const struct user_record *user, int64_t totp_step);
