/* Making accounts and users: the one way for the commands and for the development mode. */
#pragma once
#include "admin/store_client.h"
#include "store/account_store.h"

enum { TOTP_URI_MAX_BYTES = 1024 };
#define TOTP_ISSUER TEXT("Chatelaine")

struct new_user {
    struct id id;
    struct totp_secret totp; /* secure_wipe() it */
};

struct known_user {
    struct id id, account;
};

/* Each is EXIT_DONE, or the code of what was told on standard error. */
MUST_CHECK int account_add(struct store_client *client, struct text name, struct id *ret_account);
/* email: as account_normalise_email() left it; password: judged. */
MUST_CHECK int user_add(struct store_client *client, struct keyring *keyring, const struct id *account,
                        const char *email, struct text password, struct new_user *ret_user);
/* Hashes while the client waits. */
void user_hash_password(struct store_client *client, struct keyring *keyring, const struct id *user,
                        struct text password, char ret_hash[PASSWORD_HASH_BYTES]);
/* email: normalised. */
MUST_CHECK int user_find(struct store_client *client, const char *email, bool *ret_is_known,
                         struct known_user *ret_user);
/* Replaces what is not NULL, ends the user's sessions and unlocks him. */
MUST_CHECK int user_reset(struct store_client *client, const struct id *user, const char *password_hash,
                          const uint8_t *totp_sealed);
/* Empty for an unknown account. */
MUST_CHECK int account_name_find(struct store_client *client, const struct id *account,
                                 char ret_name[ACCOUNT_NAME_MAX_BYTES + 1]);
/* Ends a lock, and forgets what is counted against the user. */
MUST_CHECK int user_unlock(struct store_client *client, const struct id *user);
