/* What the commands about users share. */
#pragma once
#include "admin_internal.h"
#include "records/people_store.h"

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

/* One run of a command: who it is about, and what became of it. */
struct people_run {
    const struct command_line *line;
    struct store_client client;
    struct known_user user;
    char email[EMAIL_MAX_BYTES + 1];
    struct person person;
    int64_t sessions_ended;
    struct buf revoked, kept; /* ids, each with a blank behind it */
    struct keyring *keyring;  /* with a password: loaded before that is asked for */
    struct buf password;
};

typedef int people_act(struct people_run *run);

enum people_need { PEOPLE_KNOWN, PEOPLE_KNOWN_WITH_PASSWORD, PEOPLE_NEW, PEOPLE_NEW_WITH_PASSWORD };

/* Reads --email and the password that the command needs, opens the store, finds the user unless the email is a new one,
 * acts, and closes it. */
MUST_CHECK int people_run(const struct command_line *line, enum people_need need, people_act *act);

/* Of a command that makes a user or an invitation, and of one that changes a user. */
extern const struct store_refusals NEW_USER_REFUSALS, USER_REFUSALS;
