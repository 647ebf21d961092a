/* What binds the store's records to master keys, and how that changes: for 'master-key rotate' and doctor. Records are
 * told here as they are stored, also those that other verbs refuse. */
#pragma once
#include "core/key.h"
#include "store/account_store.h"

/* The sorted sets of an account's keys, by number. */
enum { SEAL_KEY_SETS = 6, SEAL_KEYS_AT_ONCE = 200 };

struct stored_key {
    struct id id;
    uint8_t digest[KEY_DIGEST_BYTES];
    struct text packed; /* valid during the call; empty: it is missing */
};
typedef void stored_keys_listed(void *arg, enum store_result result, const struct stored_key *keys, size_t count);
/* The next keys of a set behind that id (empty: from the first), at most SEAL_KEYS_AT_ONCE, in order. */
void seal_store_list_keys(struct store *store, const struct id *account, unsigned set, const struct id *behind,
                          stored_keys_listed *done, void *arg);
/* All users of an account, with their secrets. */
void seal_store_list_users(struct store *store, const struct id *account, users_listed *done, void *arg);

/* STORE_CONFLICT: it was changed since it was read, and stays as it is. */
void seal_store_put_key(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], struct text was, struct text is,
                        store_done *done, void *arg);
/* password_hash, totp_sealed and mac. */
void seal_store_put_user(struct store *store, const struct user_record *was, const struct user_record *is,
                         store_done *done, void *arg);

/* Notes the store's current master key, forgets another (its whole name; empty: none), and takes records without a seal
 * until then (0: no more). */
void seal_store_note(struct store *store, struct text forget, int64_t unsealed_until_ms, store_done *done, void *arg);

/* In account_store.c. */
void user_record_seal(struct keyring *keyring, struct user_record *user);
enum record_seal user_record_judge(struct keyring *keyring, const struct user_record *user, size_t *ret_generation);
