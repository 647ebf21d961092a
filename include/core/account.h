/* Rules for accounts and their users. */
#pragma once
#include "core/id.h"
#include "core/limits.h"

/* Trims, checks the shape (one '@', no blanks or control characters, at most 254 bytes) and lowers ASCII letters:
 * one user, one spelling. ret_email has room for EMAIL_MAX_BYTES + 1 and is NUL-terminated. */
MUST_CHECK bool account_normalise_email(struct text email, char *ret_email);
MUST_CHECK bool account_name_valid(struct text name);

enum password_verdict { PASSWORD_OK, PASSWORD_TOO_SHORT, PASSWORD_TOO_LONG, PASSWORD_COMMON, PASSWORD_NOT_TEXT };
/* 12 to 256 code points, any composition, and none of the often used ones. For new passwords only. */
enum password_verdict account_judge_password(struct text password);
const char *account_explain_password(enum password_verdict verdict);
