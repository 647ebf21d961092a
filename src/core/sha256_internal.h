/* SHA-256 (FIPS 180-4) of many messages that begin alike: their beginning is taken in once. */
#pragma once
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>

/* Until OpenSSL 3.2, each copy of a begun EVP_MD_CTX is an allocation, a wiping and a free: as much time as the hash of
 * a key itself takes, with every check. Before, the interface is taken whose state is plain memory; deprecated it is
 * because it knows no providers. */
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
/* Of the prefix and these bytes; ret_digest may be where they are. */
void sha256_prefix_digest(const struct sha256_prefix *prefix, const void *bytes, size_t count,
                          uint8_t ret_digest[SHA256_BYTES]);
