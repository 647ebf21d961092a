#define OPENSSL_SUPPRESS_DEPRECATED /* see SHA256_BY_EVP */
#include "sha256_internal.h"

#include "base/check.h"
#include "base/secure.h"

#if SHA256_BY_EVP

void sha256_prefix_init(struct sha256_prefix *prefix, const uint8_t *bytes, size_t count)
{
    EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);

    prefix->begun = EVP_MD_CTX_new();
    prefix->message = EVP_MD_CTX_new();
    CHECK(sha256 && prefix->begun && prefix->message);
    CHECK(EVP_DigestInit_ex2(prefix->begun, sha256, NULL) == 1 && EVP_DigestUpdate(prefix->begun, bytes, count) == 1);
    EVP_MD_free(sha256);
}

void sha256_prefix_finish(struct sha256_prefix *prefix)
{
    EVP_MD_CTX_free(prefix->begun);
    EVP_MD_CTX_free(prefix->message);
}

void sha256_prefix_digest(const struct sha256_prefix *prefix, const void *bytes, size_t count,
                          uint8_t ret_digest[SHA256_BYTES])
{
    unsigned written = 0;

    CHECK(EVP_MD_CTX_copy_ex(prefix->message, prefix->begun) == 1 &&
          EVP_DigestUpdate(prefix->message, bytes, count) == 1);
    CHECK(EVP_DigestFinal_ex(prefix->message, ret_digest, &written) == 1 && written == SHA256_BYTES);
}

#else

void sha256_prefix_init(struct sha256_prefix *prefix, const uint8_t *bytes, size_t count)
{
    CHECK(SHA256_Init(&prefix->begun) == 1 && SHA256_Update(&prefix->begun, bytes, count) == 1);
}

void sha256_prefix_finish(struct sha256_prefix *prefix)
{
    secure_wipe(prefix, sizeof *prefix);
}

void sha256_prefix_digest(const struct sha256_prefix *prefix, const void *bytes, size_t count,
                          uint8_t ret_digest[SHA256_BYTES])
{
    SHA256_CTX message = prefix->begun;

    CHECK(SHA256_Update(&message, bytes, count) == 1 && SHA256_Final(ret_digest, &message) == 1);
    secure_wipe(&message, sizeof message);
}

#endif
