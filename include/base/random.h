/* Random bytes from OpenSSL's generator, which the operating system seeds; aborts if none are available. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* For secrets. */
void random_secret(void *ret_bytes, size_t count);
/* For names and jitter: drawn from a buffer that is refilled in large steps, so a draw costs no system call. */
void random_public(void *ret_bytes, size_t count);
/* Uniform in [0, bound), bound > 0, public quality. */
uint32_t random_below(uint32_t bound);
