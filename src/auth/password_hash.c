#include "password_hash_internal.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/random.h"
#include "base/secure.h"

#include <openssl/evp.h>
#include <string.h>

enum {
    BLOCK_SIZE = 8,
    PARALLELISM = 1,
    COST_MIN = 4, /* cheap hashes exist only in tests; no command or request makes them */
    MEMORY_MAX_BYTES = 160 << 20,
};

/* No password has this text, because none may contain a NUL. */
static const struct text PEPPER_NAME_INPUT = {"\0name of the pepper", 19};
static const struct text BOUND_PREFIX = {"\0bound to ", 10};
enum { BOUND_MAX_BYTES = 128 };

_Static_assert((int)PASSWORD_DERIVED_BYTES == (int)KEYRING_DIGEST_BYTES, "what is bound has the size of a digest");

static bool read_number(struct text *rest, uint64_t min, uint64_t max, uint64_t *ret_value)
{
    struct text part;
    return text_next(rest, '$', &part) && text_to_u64(part, max, ret_value) && *ret_value >= min;
}

/* "scrypt-id": bound to the user's id. */
static bool read_scheme(struct text *rest, bool *ret_is_bound)
{
    struct text part;
    if (!text_next(rest, '$', &part))
        return false;
    *ret_is_bound = text_equal(part, TEXT("scrypt-id"));
    return *ret_is_bound || text_equal(part, TEXT("scrypt"));
}

static bool read_pepper_name(struct text *rest, char ret_name[PASSWORD_PEPPER_NAME_CHARS + 1])
{
    struct text part;
    uint8_t bytes[PASSWORD_PEPPER_NAME_CHARS / 2];
    if (!text_next(rest, '$', &part) || !decode_hex(part, bytes, sizeof bytes))
        return false;
    memcpy(ret_name, part.ptr, PASSWORD_PEPPER_NAME_CHARS);
    ret_name[PASSWORD_PEPPER_NAME_CHARS] = '\0';
    return true;
}

static bool read_bytes(struct text *rest, uint8_t *ret_bytes, size_t count)
{
    struct text part;
    return text_next(rest, '$', &part) && decode_base64url(part, ret_bytes, count);
}

bool password_hash_parse(struct text t, struct password_hash *ret_hash)
{
    struct password_hash hash = {0};
    struct text rest = t;
    uint64_t cost, block_size, parallelism;
    if (!read_scheme(&rest, &hash.is_bound) || !read_number(&rest, COST_MIN, PASSWORD_COST_DEFAULT, &cost) ||
        !read_number(&rest, BLOCK_SIZE, BLOCK_SIZE, &block_size) ||
        !read_number(&rest, PARALLELISM, PARALLELISM, &parallelism) || !read_pepper_name(&rest, hash.pepper_name) ||
        !read_bytes(&rest, hash.salt, sizeof hash.salt) || !read_bytes(&rest, hash.derived, sizeof hash.derived) ||
        rest.ptr)
        return false;
    hash.cost = (unsigned)cost;
    *ret_hash = hash;
    return true;
}

void password_hash_print(const struct password_hash *hash, char ret_text[PASSWORD_HASH_BYTES])
{
    struct buf out = BUF_OVER(ret_text, PASSWORD_HASH_BYTES);
    buf_printf(&out, "scrypt%s$%u$%d$%d$%s$", hash->is_bound ? "-id" : "", hash->cost, BLOCK_SIZE, PARALLELISM,
               hash->pepper_name);
    encode_base64url(&out, hash->salt, sizeof hash->salt);
    buf_append_char(&out, '$');
    encode_base64url(&out, hash->derived, sizeof hash->derived);
    buf_append_char(&out, '\0');
    ENSURE(!out.failed);
}

void password_hash_dummy(struct password_hash *ret_hash)
{
    *ret_hash = (struct password_hash){.cost = PASSWORD_COST_DEFAULT};
    random_public(ret_hash->salt, sizeof ret_hash->salt);
    random_public(ret_hash->derived, sizeof ret_hash->derived);
}

void password_pepper_name(struct keyring *keyring, size_t generation, char ret_name[PASSWORD_PEPPER_NAME_CHARS + 1])
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_PASSWORD, generation, PEPPER_NAME_INPUT, digest);
    encode_hex_text(ret_name, PASSWORD_PEPPER_NAME_CHARS + 1, digest, PASSWORD_PEPPER_NAME_CHARS / 2);
}

bool password_pepper_find(struct keyring *keyring, const char *name, size_t *ret_generation)
{
    for (size_t i = 0; i < keyring_generations(keyring); i++) {
        char here[PASSWORD_PEPPER_NAME_CHARS + 1];
        password_pepper_name(keyring, i, here);
        if (text_equal_nocase(text_of(here), text_of(name))) {
            *ret_generation = i;
            return true;
        }
    }
    return false;
}

void password_hash_bind(struct keyring *keyring, size_t generation, struct text user,
                        uint8_t derived[PASSWORD_DERIVED_BYTES])
{
    char storage[BOUND_MAX_BYTES];
    struct buf bound = BUF_OVER(storage, sizeof storage);
    buf_append_text(&bound, BOUND_PREFIX);
    buf_append_text(&bound, user);
    buf_append(&bound, derived, PASSWORD_DERIVED_BYTES);
    REQUIRE(!bound.failed); /* otherwise hashes of two users could be the same */
    keyring_digest(keyring, KEYRING_PASSWORD, generation, buf_text(&bound), derived);
    secure_wipe(storage, sizeof storage);
}

bool password_hash_derive(const struct password_hash *hash, const uint8_t peppered[KEYRING_DIGEST_BYTES],
                          uint8_t ret_derived[PASSWORD_DERIVED_BYTES])
{
    return EVP_PBE_scrypt((const char *)peppered, KEYRING_DIGEST_BYTES, hash->salt, sizeof hash->salt,
                          UINT64_C(1) << hash->cost, BLOCK_SIZE, PARALLELISM, MEMORY_MAX_BYTES, ret_derived,
                          PASSWORD_DERIVED_BYTES) == 1;
}
