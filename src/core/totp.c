#include "core/totp.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/random.h"
#include "base/secure.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { HMAC_SHA1_BYTES = 20, COUNTER_BYTES = 8, DIGITS_MAX = 8, WINDOW_STEPS = 1 };

void totp_secret_mint(struct totp_secret *ret_secret)
{
    random_secret(ret_secret->bytes, sizeof ret_secret->bytes);
}

int64_t totp_step(int64_t wall_ms)
{
    return wall_ms / TOTP_STEP_MS;
}

/* RFC 4226 section 5.3. */
void totp_print(const uint8_t *secret, size_t secret_bytes, int64_t step, unsigned digits, char *ret_digits_and_nul)
{
    CHECK(digits >= TOTP_DIGITS && digits <= DIGITS_MAX && secret_bytes <= INT32_MAX);
    uint8_t counter[COUNTER_BYTES], mac[HMAC_SHA1_BYTES];
    for (size_t i = 0; i < COUNTER_BYTES; i++)
        counter[i] = (uint8_t)((uint64_t)step >> (8 * (COUNTER_BYTES - 1 - i)));
    CHECK(HMAC(EVP_sha1(), secret, (int)secret_bytes, counter, sizeof counter, mac, NULL));
    const uint8_t *at = mac + (mac[HMAC_SHA1_BYTES - 1] & 15);
    uint32_t value = (uint32_t)(at[0] & 0x7f) << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    ret_digits_and_nul[digits] = '\0';
    for (unsigned i = digits; i-- > 0; value /= 10)
        ret_digits_and_nul[i] = (char)('0' + value % 10);
    secure_wipe(mac, sizeof mac);
}

static bool is_code(struct text t)
{
    if (t.len != TOTP_DIGITS)
        return false;
    for (size_t i = 0; i < t.len; i++)
        if (!text_is_digit(t.ptr[i]))
            return false;
    return true;
}

/* Always compares every step. If two steps have the same code, the later one counts, because that uses up both. */
bool totp_verify(const struct totp_secret *secret, struct text code, int64_t wall_ms, int64_t *ret_step)
{
    if (!is_code(code))
        return false;
    bool matches = false;
    for (int64_t step = totp_step(wall_ms) - WINDOW_STEPS; step <= totp_step(wall_ms) + WINDOW_STEPS; step++) {
        char expected[TOTP_DIGITS + 1];
        totp_print(secret->bytes, sizeof secret->bytes, step, TOTP_DIGITS, expected);
        if (secure_equal(code, (struct text){expected, TOTP_DIGITS})) {
            *ret_step = step;
            matches = true;
        }
        secure_wipe(expected, sizeof expected);
    }
    return matches;
}

uint32_t totp_wait_s(int64_t step, int64_t wall_ms)
{
    const int64_t ahead = step - totp_step(wall_ms);
    if (ahead < 0)
        return 1;
    const int64_t steps = ahead < WINDOW_STEPS ? ahead + 1 : WINDOW_STEPS + 1;
    return (uint32_t)((steps * TOTP_STEP_MS - wall_ms % TOTP_STEP_MS + 999) / 1000);
}

void totp_print_uri(const struct totp_secret *secret, struct text issuer, struct text email, struct buf *out)
{
    buf_append_str(out, "otpauth://totp/");
    encode_percent(out, issuer);
    buf_append_char(out, ':');
    encode_percent(out, email);
    buf_append_str(out, "?secret=");
    encode_base32(out, secret->bytes, sizeof secret->bytes);
    buf_append_str(out, "&issuer=");
    encode_percent(out, issuer);
}

static bool secret_of_uri(struct text uri, struct text *ret_base32)
{
    struct text query = uri, path, part;
    if (!text_next(&query, '?', &path))
        return false;
    while (text_next(&query, '&', &part))
        if (text_starts_with(part, TEXT("secret="))) {
            *ret_base32 = text_skip(part, TEXT("secret=").len);
            return true;
        }
    return false;
}

bool totp_parse_uri(struct text uri, struct totp_secret *ret_secret)
{
    struct text base32 = uri;
    if (text_starts_with(uri, TEXT("otpauth://totp/")) && !secret_of_uri(uri, &base32))
        return false;
    struct totp_secret secret;
    size_t bytes;
    const bool whole = decode_base32(base32, secret.bytes, sizeof secret.bytes, &bytes) && bytes == sizeof secret.bytes;
    if (whole)
        *ret_secret = secret;
    secure_wipe(&secret, sizeof secret);
    return whole;
}
