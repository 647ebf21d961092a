/* The stored form of a password: its parameters, and the one expensive computation. */
#pragma once
#include "auth/password.h"

enum {
    PASSWORD_COST_DEFAULT = 17, /* N = 2^17: 128 MiB */
    PASSWORD_SALT_BYTES = 16,
    PASSWORD_DERIVED_BYTES = 32,
    PASSWORD_PEPPER_NAME_CHARS = 8,
};

struct password_hash {
    unsigned cost; /* N = 2^cost */
    char pepper_name[PASSWORD_PEPPER_NAME_CHARS + 1];
    uint8_t salt[PASSWORD_SALT_BYTES];
    bool is_bound; /* derived is bound to the user, by password_hash_bind() */
    uint8_t derived[PASSWORD_DERIVED_BYTES];
};

/* A cost above PASSWORD_COST_DEFAULT is refused. */
MUST_CHECK bool password_hash_parse(struct text t, struct password_hash *ret_hash);
void password_hash_print(const struct password_hash *hash, char ret_text[PASSWORD_HASH_BYTES]);
/* A stand-in for a user who does not exist: it takes the usual work, and nothing matches it. */
void password_hash_dummy(struct password_hash *ret_hash);

/* Names the master key of that generation and reveals nothing about it. */
void password_pepper_name(struct keyring *keyring, size_t generation, char ret_name[PASSWORD_PEPPER_NAME_CHARS + 1]);
/* The generation with that name. False: that master key is not here. */
MUST_CHECK bool password_pepper_find(struct keyring *keyring, const char *name, size_t *ret_generation);

/* Binds what scrypt has derived to the user, under the pepper of that generation: for another user it matches nothing.
 * Loop thread only. */
void password_hash_bind(struct keyring *keyring, size_t generation, struct text user,
                        uint8_t derived[PASSWORD_DERIVED_BYTES]);

/* scrypt with the hash's salt and cost. Any thread. False: out of memory. */
MUST_CHECK bool password_hash_derive(const struct password_hash *hash, const uint8_t peppered[KEYRING_DIGEST_BYTES],
                                     uint8_t ret_derived[PASSWORD_DERIVED_BYTES]);
