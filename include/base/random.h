/* Random bytes from OpenSSL's generator, which the operating system seeds; aborts if none are available. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* For secrets. */
void random_secret(void *ret_bytes, size_t count);
/* For names: fills ret_digits, of an odd size up to RANDOM_HEX_SIZE_MAX, with hex digits and a NUL. */
enum { RANDOM_HEX_SIZE_MAX = 33 };
void random_hex(char *ret_digits, size_t size);
/* For many secrets in a row, most of which are thrown away: fetched ahead, which costs a tenth. Begins as {0}. */
enum { RANDOM_AHEAD_BYTES = 1024 };
struct random_ahead {
    uint8_t bytes[RANDOM_AHEAD_BYTES];
    size_t left;
};
/* count: at most RANDOM_AHEAD_BYTES */
void random_ahead_take(struct random_ahead *ahead, void *ret_bytes, size_t count);
void random_ahead_wipe(struct random_ahead *ahead);
/* For names and jitter: drawn from a buffer that is refilled in large steps, so a draw costs no system call. */
void random_public(void *ret_bytes, size_t count);
/* Uniform in [0, bound), bound > 0, public quality. */
uint32_t random_below(uint32_t bound);
