/* Password hashes: scrypt (RFC 7914, N=2^17, r=8, p=1: 128 MiB and about 300 ms each) over a peppered password, on
 * their own threads, behind bounded queues. At most `parallel` run, which bounds memory; at most `queue` wait in each
 * part, which bounds time. Strangers cannot hold up known people, who have a part of their own and get every other hash
 * while both wait. Within a part, sources take turns: a source with many hashes waits behind itself. If the part is
 * full, its last hash makes room for a source that has fewer. */
#pragma once
#include "core/keyring.h"
#include "records/account_store.h"
#include <uv.h>

struct password_pool;

struct password_pool *password_pool_create(uv_loop_t *loop, struct keyring *keyring, unsigned parallel, unsigned queue);
/* From now on nothing is begun: what waits, and what still comes, completes with PASSWORD_CANCELLED. Running ones
 * finish. */
void password_pool_shut(struct password_pool *pool);
/* The same; closed runs once, last. */
void password_pool_close(struct password_pool *pool, void (*closed)(void *arg), void *arg);

/* PASSWORD_KNOWN: step-ups, and sign-ins from a browser that the user signed in from before. */
enum password_part { PASSWORD_STRANGER, PASSWORD_KNOWN, PASSWORD_PARTS };
struct password_turn {
    enum password_part part;
    uint64_t source; /* who takes turns: a network, a browser, a user */
};

enum password_result { PASSWORD_MATCHES, PASSWORD_DIFFERS, PASSWORD_OVERLOADED, PASSWORD_CANCELLED };
typedef void password_verified(void *arg, enum password_result result);
/* Compares the password in the form of account_prepare_password() and, if that differs, also as typed, for older
 * hashes. user: the id of the hash's user; a hash bound to another user matches nothing. hash NULL: there is no such
 * user; does the same work and answers PASSWORD_DIFFERS. The password is copied, and the copy wiped afterwards. done
 * runs exactly once, later. PASSWORD_OVERLOADED: no hash was computed. */
void password_verify(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, const char *hash, password_verified *done, void *arg);
/* hash: of the password, bound to the user, under the current master key; NULL if none was computed. Valid during the
 * call. */
typedef void password_rehashed(void *arg, const char *hash);
/* Makes a new hash of a verified password, in its turn. done runs exactly once, later. */
void password_rehash(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, password_rehashed *done, void *arg);
/* Estimates the seconds until the present queue is hashed, from recent times per hash; 1 to 60. */
uint32_t password_pool_retry_after_s(const struct password_pool *pool);
/* Makes "scrypt-id$17$8$1$<pepper>$<salt>$<hash>", valid for that user only (earlier versions made "scrypt$...", valid
 * for any user). pepper names the master key, by 8 hex digits that reveal nothing about it, so that retired ones still
 * verify; then a fresh 16-byte salt and the hash, in base64url. Blocks until it is done: for the command line only. */
void password_hash_now(struct keyring *keyring, struct text user, struct text password,
                       char ret_hash[PASSWORD_HASH_BYTES]);
/* The generation of the master key that a hash needs; false if that key is not here. */
MUST_CHECK bool password_hash_generation(struct keyring *keyring, const char *hash, size_t *ret_generation);
bool password_hash_is_bound(const char *hash);
/* Binds a hash of an earlier version to that user. False: it is not one, or its master key is not here. */
MUST_CHECK bool password_hash_bind_older(struct keyring *keyring, struct text user, const char *hash,
                                         char ret_hash[PASSWORD_HASH_BYTES]);
