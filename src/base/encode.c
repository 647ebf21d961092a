#include "base/encode.h"

#include "base/check.h"

#include <string.h>

static const char BASE64URL[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char BASE32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/* The two digits of each byte. A table, because every check that reads the store prints a digest. */
static const char HEX_PAIRS[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
                                "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
                                "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
                                "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
                                "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
                                "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
                                "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
                                "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static const char HEX_UPPER[] = "0123456789ABCDEF";

/* An alphabet for decoding: the value of a digit, or -1. */
typedef int (*digit_value)(char c);

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Common to both forms of base64. */
static int base62_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    return c >= '0' && c <= '9' ? c - '0' + 52 : -1;
}

static int base64_value(char c)
{
    return c == '+' ? 62 : c == '/' ? 63 : base62_value(c);
}

static int base64url_value(char c)
{
    return c == '-' ? 62 : c == '_' ? 63 : base62_value(c);
}

static int base32_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= '2' && c <= '7' ? c - '2' + 26 : -1;
}

/* Digits of `bits` bits each, the last one padded with zero bits. */
static inline void encode_digits(struct buf *out, const unsigned char *bytes, size_t count, unsigned bits,
                                 const char *alphabet)
{
    unsigned pending = 0, pending_bits = 0;
    char *digit = buf_reserve(out, (count * 8 + bits - 1) / bits);
    if (!digit)
        return;
    for (size_t i = 0; i < count; i++) {
        pending = pending << 8 | bytes[i];
        pending_bits += 8;
        while (pending_bits >= bits) {
            pending_bits -= bits;
            *digit++ = alphabet[pending >> pending_bits];
            pending &= (1U << pending_bits) - 1;
        }
    }
    if (pending_bits)
        *digit++ = alphabet[pending << (bits - pending_bits)];
    out->len = (size_t)(digit - out->ptr);
}

/* On the path of checks, so without the bookkeeping of encode_digits(). */
void encode_hex(struct buf *out, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    char *digit = buf_reserve(out, 2 * count);
    if (!digit)
        return;
    for (size_t i = 0; i < count; i++)
        memcpy(digit + 2 * i, HEX_PAIRS + 2 * (size_t)byte[i], 2);
    out->len += 2 * count;
}

void encode_base64url(struct buf *out, const void *bytes, size_t count)
{
    encode_digits(out, bytes, count, 6, BASE64URL);
}

void encode_base32(struct buf *out, const void *bytes, size_t count)
{
    encode_digits(out, bytes, count, 5, BASE32);
}

void encode_hex_text(char *ret_text, size_t size, const void *bytes, size_t count)
{
    struct buf out = BUF_OVER(ret_text, size);

    encode_hex(&out, bytes, count);
    buf_append_char(&out, '\0');
    CHECK(!out.failed);
}

void encode_base64url_text(char *ret_text, size_t size, const void *bytes, size_t count)
{
    struct buf out = BUF_OVER(ret_text, size);

    encode_base64url(&out, bytes, count);
    buf_append_char(&out, '\0');
    CHECK(!out.failed);
}

/* Whether t is the canonical encoding of `count` bytes: exactly as many digits as they need, surplus bits zero. */
static bool is_encoding(struct text t, unsigned bits, digit_value value, size_t count)
{
    if (count > SIZE_MAX / 8 || t.len != (count * 8 + bits - 1) / bits)
        return false;
    for (size_t i = 0; i < t.len; i++)
        if (value(t.ptr[i]) < 0)
            return false;
    unsigned surplus_bits = (unsigned)(t.len * bits - count * 8);
    return t.len == 0 || ((unsigned)value(t.ptr[t.len - 1]) & ((1U << surplus_bits) - 1)) == 0;
}

static bool decode_digits(struct text t, unsigned bits, digit_value value, unsigned char *ret_bytes, size_t count)
{
    if (!is_encoding(t, bits, value, count))
        return false;
    unsigned pending = 0, pending_bits = 0;
    for (size_t i = 0; i < t.len; i++) {
        pending = pending << bits | (unsigned)value(t.ptr[i]);
        pending_bits += bits;
        if (pending_bits >= 8) {
            pending_bits -= 8;
            *ret_bytes++ = (unsigned char)(pending >> pending_bits);
            pending &= (1U << pending_bits) - 1;
        }
    }
    return true;
}

bool decode_hex(struct text t, void *ret_bytes, size_t count)
{
    return decode_digits(t, 4, hex_value, ret_bytes, count);
}

bool decode_base64url(struct text t, void *ret_bytes, size_t count)
{
    return decode_digits(t, 6, base64url_value, ret_bytes, count);
}

bool decode_base64(struct text t, void *ret_bytes, size_t count)
{
    size_t padding = (3 - count % 3) % 3;
    if (t.len % 4 != 0 || t.len < padding)
        return false;
    t.len -= padding;
    for (size_t i = 0; i < padding; i++)
        if (t.ptr[t.len + i] != '=')
            return false;
    return decode_digits(t, 6, base64_value, ret_bytes, count);
}

/* Drops padding and blanks at the end. */
static struct text base32_trim(struct text t)
{
    while (t.len > 0 && (t.ptr[t.len - 1] == '=' || t.ptr[t.len - 1] == ' '))
        t.len--;
    return t;
}

bool decode_base32(struct text t, void *ret_bytes, size_t max_bytes, size_t *ret_count)
{
    struct buf digits;
    buf_init(&digits, max_bytes > SIZE_MAX / 8 ? SIZE_MAX : (max_bytes * 8 + 4) / 5);
    struct text rest = base32_trim(t), group;
    while (text_next(&rest, ' ', &group))
        buf_append_text(&digits, group);

    /* No bytes encode to a last group of 1, 3 or 6 digits; is_encoding() finds one digit too many. */
    size_t count = digits.len * 5 / 8;
    bool is_decoded = !digits.failed && decode_digits(buf_text(&digits), 5, base32_value, ret_bytes, count);
    if (is_decoded)
        *ret_count = count;
    buf_wipe(&digits);
    return is_decoded;
}

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

void encode_percent(struct buf *out, struct text t)
{
    for (size_t i = 0; i < t.len; i++) {
        if (is_unreserved(t.ptr[i])) {
            buf_append_char(out, t.ptr[i]);
            continue;
        }
        unsigned char byte = (unsigned char)t.ptr[i];
        const char escape[] = {'%', HEX_UPPER[byte >> 4], HEX_UPPER[byte & 15]};
        buf_append(out, escape, sizeof escape);
    }
}
