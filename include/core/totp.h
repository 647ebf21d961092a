/* Time-based one-time codes (RFC 6238 on RFC 4226): SHA-1, 6 digits, 30 s. */
#pragma once
#include "base/text.h"

enum { TOTP_SECRET_BYTES = 20, TOTP_DIGITS = 6, TOTP_STEP_MS = 30000, TOTP_URI_MAX_BYTES = 1024 };
#define TOTP_ISSUER TEXT("Chatelaine")

struct totp_secret {
    uint8_t bytes[TOTP_SECRET_BYTES];
};

void totp_secret_mint(struct totp_secret *ret_secret);
int64_t totp_step(int64_t wall_ms);
/* The code of one step; digits 6 to 8. */
void totp_print(const uint8_t *secret, size_t secret_bytes, int64_t step, unsigned digits, char *ret_digits_and_nul);
/* Compares in constant time with the steps one before, at and one after wall_ms. code: exactly 6 ASCII digits. */
MUST_CHECK bool totp_verify(const struct totp_secret *secret, struct text code, int64_t wall_ms, int64_t *ret_step);
/* Seconds until authenticators show the code of a step later than `step`: 1 to 60, because no step after the next one
 * is accepted. */
uint32_t totp_wait_s(int64_t step, int64_t wall_ms);
/* otpauth://totp/Chatelaine:<email>?secret=…&issuer=Chatelaine (Key Uri Format). */
void totp_print_uri(const struct totp_secret *secret, struct text issuer, struct text email, struct buf *out);
/* Reads the secret from such a URI, or from plain base32. */
MUST_CHECK bool totp_parse_uri(struct text uri, struct totp_secret *ret_secret);
