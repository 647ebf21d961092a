/* In builds with sanitizers the program's calls of EVP_PBE_scrypt come here (the linker's --wrap), so that a test that
 * needs people, not their passwords' strength, does not spend 0.6 s and 128 MiB on each: CHATELAINE_TEST_PASSWORD_COST
 * stands for the cost of new hashes, as a power of two. What is kept says what the caller asked for. Without the
 * variable the cost is the true one, as it always is in a release build: scripts/test looks for the name in it. */
#include <openssl/evp.h>
#include <stdlib.h>

enum { TRUE_COST = 17, COST_MAX = 16 };

/* The linker's names. */
int quick_scrypt(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                 uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key,
                 size_t key_len) __asm__("__wrap_EVP_PBE_scrypt");
int true_scrypt(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key,
                size_t key_len) __asm__("__real_EVP_PBE_scrypt");

int quick_scrypt(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                 uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key, size_t key_len)
{
    const char *text = getenv("CHATELAINE_TEST_PASSWORD_COST");
    const long cost = text ? strtol(text, NULL, 10) : 0;

    if (n == UINT64_C(1) << TRUE_COST && cost >= 1 && cost <= COST_MAX)
        n = UINT64_C(1) << cost;
    return true_scrypt(password, password_len, salt, salt_len, n, r, p, memory_max, ret_key, key_len);
}
