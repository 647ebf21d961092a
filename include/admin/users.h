/* Creates and changes accounts and users, for the administrative commands and for `dev`. */
#pragma once
#include "admin/store_client.h"
#include "records/account_store.h"

struct new_user {
    struct id id;
    struct totp_secret totp; /* secure_wipe() it */
};

struct known_user {
    struct id id, account;
};

/* All functions that return an int return EXIT_DONE, or an exit code after printing an error. */
MUST_CHECK int account_add(struct store_client *client, struct text name, struct id *ret_account);
/* email: normalised by account_normalise_email(). password: already checked against the password rules. must_change:
 * before the user may do anything else. */
MUST_CHECK int user_add(struct store_client *client, struct keyring *keyring, const struct id *account,
                        const char *email, enum role role, struct text password, bool must_change,
                        struct new_user *ret_user);
/* Blocks while it computes the hash. */
void user_hash_password(struct store_client *client, struct keyring *keyring, const struct id *user,
                        struct text password, char ret_hash[PASSWORD_HASH_BYTES]);
/* email: normalised. Also finds a user who has it as email_read() reads it. */
MUST_CHECK int user_find(struct store_client *client, const char *email, bool *ret_is_known,
                         struct known_user *ret_user);
/* The same; it is an error if there is none. */
MUST_CHECK int user_require(struct store_client *client, const char *email, struct known_user *ret_user);
/* Replaces the secrets that are not NULL, ends the user's sessions and unlocks the user. must_change: the new password,
 * before the user may do anything else. */
MUST_CHECK int user_reset(struct store_client *client, const struct id *user, const char *password_hash,
                          bool must_change, const uint8_t *totp_sealed);
/* ret_name is empty if the account is unknown. */
MUST_CHECK int account_name_find(struct store_client *client, const struct id *account,
                                 char ret_name[ACCOUNT_NAME_MAX_BYTES + 1]);
/* Unlocks the user and resets the count of failed attempts. */
MUST_CHECK int user_unlock(struct store_client *client, const struct id *user);
