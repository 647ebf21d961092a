/* Password hashes: scrypt (RFC 7914, N=2^17, r=8, p=1: 128 MiB and some 300 ms each) over a peppered password, on
 * threads of their own, behind a bounded queue: at most `parallel` run (memory), at most `queue` wait (time). */
#pragma once
#include "core/keyring.h"
#include "store/account_store.h"
#include <uv.h>

struct password_pool;

struct password_pool *password_pool_create(uv_loop_t *loop, struct keyring *keyring, unsigned parallel, unsigned queue);
/* Waiting jobs complete as PASSWORD_CANCELLED, running ones are waited for. closed runs once, last. */
void password_pool_close(struct password_pool *pool, void (*closed)(void *arg), void *arg);

enum password_result { PASSWORD_MATCHES, PASSWORD_DIFFERS, PASSWORD_OVERLOADED, PASSWORD_CANCELLED };
typedef void password_verified(void *arg, enum password_result result);
/* hash NULL: no such user; the same work is done and PASSWORD_DIFFERS answered. The password is copied, and wiped
 * after. done runs exactly once, later. */
void password_verify(struct password_pool *pool, struct text password, const char *hash, password_verified *done,
                     void *arg);
/* "scrypt$17$8$1$<pepper>$<salt>$<hash>": pepper names the master key (8 hex digits that do not give it away), so that
 * retired ones still verify; a fresh 16-byte salt and the hash in base64url. Blocks for its whole time: command line
 * only. */
void password_hash_now(struct keyring *keyring, struct text password, char ret_hash[PASSWORD_HASH_BYTES]);
/* The generation of the master key that a hash needs; false where that is not here. */
MUST_CHECK bool password_hash_generation(struct keyring *keyring, const char *hash, size_t *ret_generation);
/* Whether the text has that form. Verifying takes pepper and cost from it; a cost above 17 is refused. */
MUST_CHECK bool password_hash_valid(const char *hash);
