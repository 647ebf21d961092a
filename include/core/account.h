/* Rules for accounts and their users. */
#pragma once
#include "core/id.h"
#include "core/limits.h"
#include "core/scope.h"

/* Trims an email, checks its shape (one '@', no blanks or control characters, no secret of
 * a key, at most 254 bytes) and lower-cases ASCII
 * letters, so that a user has one spelling. ret_email has room for EMAIL_MAX_BYTES + 1 and is NUL-terminated. */
MUST_CHECK bool account_normalise_email(struct text email, char *ret_email);

/* A user's rights in the account; each role also has those of the ones before it. Records and clients know them by
 * name, so their numbers may change. */
enum role {
    ROLE_AUDITOR,   /* read */
    ROLE_RESPONDER, /* revoke keys and devices, deny devices */
    ROLE_DEVELOPER, /* create keys, approve devices */
    ROLE_OWNER,     /* manage people */
    ROLE_COUNT,
};
/* "owner" */
struct text role_text(enum role role);
MUST_CHECK bool role_parse(struct text name, enum role *ret_role);
/* The scopes of a key that is worth as much as this role. Nobody may make a stronger credential than his own: a person
 * gives keys no more than this, and a key invites only to roles of which it holds all this. */
scope_set role_scopes(enum role role);
/* The least role that is worth all of these. */
enum role role_least_for(scope_set scopes);

/* Only keys and sessions of an active account are accepted. ACCOUNT_CLOSING: suspended, and on its way to closed, which
 * is for good. */
enum account_status { ACCOUNT_ACTIVE, ACCOUNT_SUSPENDED, ACCOUNT_CLOSING, ACCOUNT_CLOSED };
struct text account_status_text(enum account_status status);
MUST_CHECK bool account_status_parse(struct text t, enum account_status *ret_status);

/* Passwords are compared in one form, whatever the keyboard produced: any space as U+0020, the rest in Normalization
 * Form C (RFC 8265, OpaqueString). Empties ret_prepared first, which has room for PASSWORD_FORM_MAX_BYTES; the caller
 * wipes it. Invalid UTF-8, and text longer than any password, is copied unchanged. */
enum { PASSWORD_FORM_MAX_BYTES = 3 * PASSWORD_MAX_BYTES };
void account_prepare_password(struct text password, struct buf *ret_prepared);

/* A guesser knows these about the user and tries them first. Either may be empty. */
struct password_context {
    struct text email, account_name;
};

enum password_verdict { PASSWORD_OK, PASSWORD_TOO_SHORT, PASSWORD_TOO_LONG, PASSWORD_COMMON, PASSWORD_NOT_TEXT };
/* Accepts 12 to 256 code points of any kind, but no password that about 2^30 guesses find, beginning with common words,
 * years, sequences and the context. For new passwords only. context may be NULL. */
enum password_verdict account_check_password(struct text password, const struct password_context *context);
const char *account_explain_password(enum password_verdict verdict);
