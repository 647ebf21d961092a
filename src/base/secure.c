#include "base/secure.h"

#include <openssl/crypto.h>
#include <string.h>

bool secure_equal(struct text a, struct text b)
{
    if (a.len != b.len)
        return false;
    return a.len == 0 || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}

void secure_wipe(void *ptr, size_t bytes)
{
    if (bytes)
        explicit_bzero(ptr, bytes);
}
