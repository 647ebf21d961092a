/* Re-sealing the store's records under another master key, for 'master-key rotate' and doctor. Listings return records
 * exactly as stored, including those that other verbs refuse because of their MAC. */
#pragma once
#include "core/key.h"
#include "records/account_store.h"

/* The sorted sets of an account's keys, by index. */
enum { SEAL_KEY_SETS = 6, SEAL_KEYS_AT_ONCE = 200, SEAL_USERS_AT_ONCE = 200 };

struct stored_key {
    struct id id;
    uint8_t digest[KEY_DIGEST_BYTES];
    struct text packed; /* valid during the call; empty: the record is missing */
};
typedef void stored_keys_listed(void *arg, enum store_result result, const struct stored_key *keys, size_t count);
/* The next keys of a set after that id (empty: from the first), oldest first, at most SEAL_KEYS_AT_ONCE. */
void seal_store_list_keys(struct store *store, const struct id *account, unsigned set, const struct id *behind,
                          stored_keys_listed *done, void *arg);
/* The next users of an account after that id (empty: from the first), oldest first, at most SEAL_USERS_AT_ONCE, with
 * their password hashes and TOTP secrets. */
typedef void users_listed(void *arg, enum store_result result, const struct user_record *users, size_t count);
void seal_store_list_users(struct store *store, const struct id *account, const struct id *behind, users_listed *done,
                           void *arg);

/* STORE_CONFLICT: the record has changed since it was read. It is left alone. */
void seal_store_put_key(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], struct text was, struct text is,
                        store_done *done, void *arg);
/* Replaces password_hash, totp_sealed and mac. STORE_CONFLICT as above. */
void seal_store_put_user(struct store *store, const struct user_record *was, const struct user_record *is,
                         store_done *done, void *arg);

/* Notes the current master key in the store, removes another (its full name; empty: none), and accepts records without
 * a seal until unsealed_until_ms (0: not at all). */
void seal_store_note(struct store *store, struct text forget, int64_t unsealed_until_ms, store_done *done, void *arg);

/* These are in account_store.c. */
void user_record_seal(struct keyring *keyring, struct user_record *user);
enum record_seal user_record_verify(struct keyring *keyring, const struct user_record *user, size_t *ret_generation);
