/* SHA-256 (FIPS 180-4) of many messages with the same beginning, which is hashed once. */
#pragma once
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>

/* Before OpenSSL 3.2, each copy of a started EVP_MD_CTX allocates, wipes and frees memory, which takes as long as
 * hashing a key, with every check. So older versions use the low-level interface, whose state is plain memory. It is
 * deprecated because it bypasses providers. */
#define SHA256_BY_EVP (OPENSSL_VERSION_NUMBER >= 0x30200000L)

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64 };

/* As secret as the beginning itself. */
struct sha256_prefix {
#if SHA256_BY_EVP
    EVP_MD_CTX *begun, *message;
#else
    SHA256_CTX begun;
#endif
};

void sha256_prefix_init(struct sha256_prefix *prefix, const uint8_t *bytes, size_t count);
/* Wipes. */
void sha256_prefix_finish(struct sha256_prefix *prefix);
/* The digest of the prefix followed by these bytes. ret_digest may overlap them. */
void sha256_prefix_digest(const struct sha256_prefix *prefix, const void *bytes, size_t count,
                          uint8_t ret_digest[SHA256_BYTES]);
