#include "core/secret.h"
#include "base/random.h"
#include "base/secure.h"

#include <string.h>

enum { BASE = 62, RANDOM_BATCH_BYTES = 48 };

static const char ALPHABET[BASE + 1] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* By byte: whether it is in the alphabet. */
static const uint8_t BASE62[256] = {['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1};

struct shape {
    struct text prefix;
    enum key_kind kind;
    enum key_mode mode;
};

/* A device key acts in live mode. */
static const struct shape SHAPES[] = {
    {{"svc_sk_live_", 12}, KEY_API, MODE_LIVE},
    {{"svc_sk_test_", 12}, KEY_API, MODE_TEST},
    {{"svc_dk_", 7}, KEY_DEVICE, MODE_LIVE},
};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

static const struct shape *shape_for(enum key_kind kind, enum key_mode mode)
{
    for (size_t i = 0; i < SHAPE_COUNT - 1; i++)
        if (SHAPES[i].kind == kind && SHAPES[i].mode == mode)
            return &SHAPES[i];
    return &SHAPES[SHAPE_COUNT - 1];
}

/* Discards bytes of the last, incomplete cycle through the alphabet, so that each character is equally likely. */
static void draw_base62(char *ret_chars, size_t count)
{
    uint8_t bytes[RANDOM_BATCH_BYTES];
    size_t drawn = 0;
    while (drawn < count) {
        random_secret(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && drawn < count; i++)
            if (bytes[i] < 256 / BASE * BASE)
                ret_chars[drawn++] = ALPHABET[bytes[i] % BASE];
    }
    secure_wipe(bytes, sizeof bytes);
}

/* CRC-32 (ISO 3309, as in zlib), four bytes at a time. A byte's effect is linear: each entry is the sum (XOR) of the
 * values of its bits, listed here for the eight bits of a byte that 0, 1, 2 or 3 others follow. zlib handles such short
 * texts byte by byte and takes twice as long. */
#define BIT_OF(x, bit, value) ((x) >> (bit)&1 ? UINT32_C(value) : 0)
#define CRC_0(x)                                                                                                 \
    (BIT_OF(x, 0, 0x77073096) ^ BIT_OF(x, 1, 0xee0e612c) ^ BIT_OF(x, 2, 0x076dc419) ^ BIT_OF(x, 3, 0x0edb8832) ^ \
     BIT_OF(x, 4, 0x1db71064) ^ BIT_OF(x, 5, 0x3b6e20c8) ^ BIT_OF(x, 6, 0x76dc4190) ^ BIT_OF(x, 7, 0xedb88320))
#define CRC_1(x)                                                                                                 \
    (BIT_OF(x, 0, 0x191b3141) ^ BIT_OF(x, 1, 0x32366282) ^ BIT_OF(x, 2, 0x646cc504) ^ BIT_OF(x, 3, 0xc8d98a08) ^ \
     BIT_OF(x, 4, 0x4ac21251) ^ BIT_OF(x, 5, 0x958424a2) ^ BIT_OF(x, 6, 0xf0794f05) ^ BIT_OF(x, 7, 0x3b83984b))
#define CRC_2(x)                                                                                                 \
    (BIT_OF(x, 0, 0x01c26a37) ^ BIT_OF(x, 1, 0x0384d46e) ^ BIT_OF(x, 2, 0x0709a8dc) ^ BIT_OF(x, 3, 0x0e1351b8) ^ \
     BIT_OF(x, 4, 0x1c26a370) ^ BIT_OF(x, 5, 0x384d46e0) ^ BIT_OF(x, 6, 0x709a8dc0) ^ BIT_OF(x, 7, 0xe1351b80))
#define CRC_3(x)                                                                                                 \
    (BIT_OF(x, 0, 0xb8bc6765) ^ BIT_OF(x, 1, 0xaa09c88b) ^ BIT_OF(x, 2, 0x8f629757) ^ BIT_OF(x, 3, 0xc5b428ef) ^ \
     BIT_OF(x, 4, 0x5019579f) ^ BIT_OF(x, 5, 0xa032af3e) ^ BIT_OF(x, 6, 0x9b14583d) ^ BIT_OF(x, 7, 0xed59b63b))
#define FOUR(crc, x) crc(x), crc((x) + 1), crc((x) + 2), crc((x) + 3)
#define SIXTEEN(crc, x) FOUR(crc, x), FOUR(crc, (x) + 4), FOUR(crc, (x) + 8), FOUR(crc, (x) + 12)
#define SIXTY_FOUR(crc, x) SIXTEEN(crc, x), SIXTEEN(crc, (x) + 16), SIXTEEN(crc, (x) + 32), SIXTEEN(crc, (x) + 48)
#define ALL(crc) SIXTY_FOUR(crc, 0), SIXTY_FOUR(crc, 64), SIXTY_FOUR(crc, 128), SIXTY_FOUR(crc, 192)
static const uint32_t CRC[4][256] = {{ALL(CRC_0)}, {ALL(CRC_1)}, {ALL(CRC_2)}, {ALL(CRC_3)}};

static uint32_t crc_of(struct text t)
{
    const unsigned char *at = (const unsigned char *)t.ptr;
    uint32_t crc = UINT32_MAX;
    size_t i = 0;
    for (; t.len - i >= 4; i += 4)
        crc = CRC[3][(crc ^ at[i]) & 255] ^ CRC[2][(crc >> 8 ^ at[i + 1]) & 255] ^
              CRC[1][(crc >> 16 ^ at[i + 2]) & 255] ^ CRC[0][crc >> 24 ^ at[i + 3]];
    for (; i < t.len; i++)
        crc = crc >> 8 ^ CRC[0][(crc ^ at[i]) & 255];
    return ~crc;
}

static void print_checksum(struct text covered, char ret_chars[SECRET_CHECKSUM_CHARS])
{
    uint32_t crc = crc_of(covered);
    for (size_t i = SECRET_CHECKSUM_CHARS; i-- > 0; crc /= BASE)
        ret_chars[i] = ALPHABET[crc % BASE];
}

void secret_mint(enum key_kind kind, enum key_mode mode, struct secret *ret_secret)
{
    const struct text prefix = shape_for(kind, mode)->prefix;
    const size_t covered = prefix.len + SECRET_RANDOM_CHARS;
    memset(ret_secret, 0, sizeof *ret_secret);
    memcpy(ret_secret->text, prefix.ptr, prefix.len);
    draw_base62(ret_secret->text + prefix.len, SECRET_RANDOM_CHARS);
    print_checksum((struct text){ret_secret->text, covered}, ret_secret->text + covered);
}

void secret_wipe(void *secret)
{
    secure_wipe(secret, sizeof(struct secret));
}

struct text secret_text(const struct secret *secret)
{
    return (struct text){secret->text, strnlen(secret->text, SECRET_MAX_CHARS)};
}

static const struct shape *shape_of(struct text t)
{
    for (size_t i = 0; i < SHAPE_COUNT; i++)
        if (t.len == SHAPES[i].prefix.len + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS &&
            text_starts_with(t, SHAPES[i].prefix))
            return &SHAPES[i];
    return NULL;
}

bool secret_has_shape(struct text t)
{
    return shape_of(t);
}

bool secret_parse(struct text t, enum key_kind *ret_kind, enum key_mode *ret_mode)
{
    const struct shape *shape = shape_of(t);
    if (!shape)
        return false;
    const bool is_base62 = text_classes(text_skip(t, shape->prefix.len), BASE62) & 1;
    char checksum[SECRET_CHECKSUM_CHARS];
    const size_t covered = t.len - SECRET_CHECKSUM_CHARS;
    print_checksum((struct text){t.ptr, covered}, checksum);
    if (!is_base62 || !secure_equal((struct text){checksum, sizeof checksum}, text_skip(t, covered)))
        return false;
    *ret_kind = shape->kind;
    *ret_mode = shape->mode;
    return true;
}
