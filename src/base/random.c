#include "base/random.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/secure.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

enum { RANDOM_POOL_BYTES = 4096 };

/* Bytes drawn ahead, per thread. */
static _Thread_local struct {
    unsigned char bytes[RANDOM_POOL_BYTES];
    size_t left;
} pool;

static pthread_once_t fork_guard = PTHREAD_ONCE_INIT;

/* Only the thread that forked lives on in the child, so its pool is the only one that both sides could draw from. */
static void drop_pool(void)
{
    pool.left = 0;
}

static void install_fork_guard(void)
{
    CHECK(pthread_atfork(NULL, NULL, drop_pool) == 0);
}

void random_secret(void *ret_bytes, size_t count)
{
    CHECK(count <= INT32_MAX);
    CHECK(RAND_priv_bytes(ret_bytes, (int)count) == 1);
}

void random_hex(char *ret_digits, size_t size)
{
    uint8_t bytes[RANDOM_HEX_SIZE_MAX / 2];

    CHECK(size % 2 == 1 && size <= RANDOM_HEX_SIZE_MAX);
    random_secret(bytes, size / 2);
    encode_hex_text(ret_digits, size, bytes, size / 2);
}

void random_ahead_take(struct random_ahead *ahead, void *ret_bytes, size_t count)
{
    CHECK(count <= sizeof ahead->bytes);
    if (ahead->left < count) {
        random_secret(ahead->bytes, sizeof ahead->bytes);
        ahead->left = sizeof ahead->bytes;
    }
    memcpy(ret_bytes, ahead->bytes + sizeof ahead->bytes - ahead->left, count);
    ahead->left -= count;
}

void random_ahead_wipe(struct random_ahead *ahead)
{
    secure_wipe(ahead, sizeof *ahead);
}

static void refill_pool(void)
{
    CHECK(pthread_once(&fork_guard, install_fork_guard) == 0);
    CHECK(RAND_bytes(pool.bytes, sizeof pool.bytes) == 1);
    pool.left = sizeof pool.bytes;
}

void random_public(void *ret_bytes, size_t count)
{
    unsigned char *at = ret_bytes;
    while (count > 0) {
        if (pool.left == 0)
            refill_pool();
        size_t part = count < pool.left ? count : pool.left;
        memcpy(at, pool.bytes + sizeof pool.bytes - pool.left, part);
        pool.left -= part;
        at += part;
        count -= part;
    }
}

uint32_t random_below(uint32_t bound)
{
    CHECK(bound > 0);
    /* 2^32 may not be a multiple of bound. Without the first `surplus` values it is, so no result is favoured. */
    uint32_t surplus = (uint32_t)((UINT64_C(1) << 32) % bound);
    uint32_t value;
    do {
        random_public(&value, sizeof value);
    } while (value < surplus);
    return value % bound;
}
