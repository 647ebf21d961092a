/* What the commands about users share. */
#pragma once
#include "admin_internal.h"

#define ROW_EMAIL ROW_TEXT("email", email, "EMAIL", "The email address of the user. Required.")
/* In the order of enum role. */
#define ROW_ROLE(usual)                                                                                   \
    {                                                                                                     \
        .name = "role", A_CHOICE(COMMAND_OFFSET(role), usual, "auditor|responder|developer|owner"),       \
        .help = "Let the user read (auditor), also revoke keys (responder), also create keys (developer)" \
                ", or do everything (owner)."                                                             \
    }
#define ROW_ORIGIN                                              \
    ROW_TEXT("public-origin", settings.public_origin, "ORIGIN", \
             "Begin the link with this origin, as on the nodes. Required for a link.")

/* --email, normalised. */
MUST_CHECK int email_option_read(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1]);
/* --email of a new user, as email_read() reads it. */
MUST_CHECK int email_option_read_new(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1]);
/* Users of versions before 0.4 have their email as it was written: an error, if one of them has this one. The store
 * refuses those who have it as it is meant. */
MUST_CHECK int user_refuse_known(struct store_client *client, const char *written, const char *meant);

/* Of a command that makes a user or an invitation, and of one that changes a user. */
extern const struct store_refusals NEW_USER_REFUSALS, USER_REFUSALS;
