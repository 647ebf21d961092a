/* Accounts and their users in Redis. */
#pragma once
#include "core/account.h"
#include "core/totp.h"
#include "core/keyring.h"
#include "core/record_mac.h"
#include "engine/partitions.h"

/* Instead of a hash: the user must first use a reset's link. As in the prelude. */
#define USER_NO_PASSWORD "-"

enum { PASSWORD_HASH_BYTES = 160, TOTP_SEALED_BYTES = TOTP_SECRET_BYTES + KEYRING_SEAL_OVERHEAD };

struct user_record {
    struct id id;
    struct id account;
    char email[EMAIL_MAX_BYTES + 1];
    char account_name[ACCOUNT_NAME_MAX_BYTES + 1];
    char password_hash[PASSWORD_HASH_BYTES]; /* printable, NUL-terminated; see auth/password.h */
    uint8_t totp_sealed[TOTP_SEALED_BYTES];  /* keyring_seal() bound to the user's id */
    enum role role;
    int64_t created_ms;
    int64_t disabled_ms;                                /* 0: active */
    struct record_mac mac;                              /* as stored; account_store_add_user() makes it */
    bool password_expired;                              /* of a new user: the password must be changed first */
    char codes_made_with[KEYRING_SHORT_NAME_CHARS + 1]; /* for seal_store_list_users(): of the recovery codes' key */
};
typedef void user_found(void *arg, enum store_result result, const struct user_record *user);

void account_store_create(struct store *store, const struct id *account, struct text name, store_done *done, void *arg);
/* STORE_REFUSED: no such account. STORE_CONFLICT: the email is taken, or the id exists. Writes event user.created. A
 * repetition, with the same id, changes nothing. */
void account_store_add_user(struct partitions *partitions, const struct user_record *user,
                            const struct audit_source *source, store_done *done, void *arg);
/* By email. STORE_NOT_FOUND: no user has it. */
void account_store_find_user(struct partitions *partitions, struct text email, user_found *done, void *arg);
/* Replaces password_hash, totp_sealed or both (NULL: keeps it). must_change: the new password, before the user may do
 * anything else. A new password also ends links, a new TOTP secret clears the last TOTP step. Ends all of the user's
 * sessions, forgets the known browsers and unlocks the user. STORE_NOT_FOUND: no such user. Writes events
 * user.totp_reset, user.password_reset, user.unlocked, session.ended. */
void account_store_reset_user(struct store *store, const struct id *user, const char *password_hash, bool must_change,
                              const uint8_t *totp_sealed, const struct audit_source *source, store_done *done,
                              void *arg);
/* Unlocks the user and clears all failed sign-ins counted against them. STORE_NOT_FOUND: no such user. Writes event
 * user.unlocked. */
void account_store_unlock_user(struct store *store, const struct id *user, const struct audit_source *source,
                               store_done *done, void *arg);

struct account_row {
    struct id id;
    char name[ACCOUNT_NAME_MAX_BYTES + 1];
    enum account_status status;
};
typedef void accounts_listed(void *arg, enum store_result result, const struct account_row *accounts, size_t count);
void account_store_list(struct store *store, accounts_listed *done, void *arg);
/* The next accounts after that id (empty: from the first), oldest first. */
void account_store_list_page(struct store *store, const struct id *behind, unsigned limit, accounts_listed *done,
                             void *arg);
/* account: NULL unless STORE_OK. STORE_NOT_FOUND: there is none with that id. */
typedef void account_found(void *arg, enum store_result result, const struct account_row *account);
void account_store_find(struct store *store, const struct id *account, account_found *done, void *arg);
