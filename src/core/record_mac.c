#include "core/record_mac.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/secure.h"

#include <string.h>

enum { MAC_BYTES = 16, LENGTH_BYTES = 8 };

static void append_number(struct buf *out, uint64_t number)
{
    for (unsigned shift = 8 * LENGTH_BYTES; shift > 0; shift -= 8)
        buf_append_char(out, (char)(number >> (shift - 8)));
}

/* Each part follows its length, so no two lists of parts print the same. */
static bool print_parts(const struct record_parts *record, struct buf *out)
{
    append_number(out, record->kind);
    for (size_t i = 0; i < record->count; i++) {
        append_number(out, record->parts[i].len);
        buf_append_text(out, record->parts[i]);
    }
    return !out->failed;
}

static void print_mac(struct keyring *keyring, size_t generation, struct text bound, struct record_mac *ret_mac)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_RECORD_MAC, generation, bound, digest);
    encode_base64url_text(ret_mac->text, sizeof ret_mac->text, digest, MAC_BYTES);
}

void record_mac_make(struct keyring *keyring, const struct record_parts *record, struct record_mac *ret_mac)
{
    char storage[RECORD_PARTS_MAX_BYTES];
    struct buf bound = BUF_OVER(storage, sizeof storage);
    CHECK(print_parts(record, &bound));
    print_mac(keyring, 0, buf_text(&bound), ret_mac);
}

uint64_t record_mac_number(struct keyring *keyring, size_t generation, const struct record_parts *record)
{
    char storage[RECORD_PARTS_MAX_BYTES];
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct buf bound = BUF_OVER(storage, sizeof storage);
    uint64_t number = 0;

    CHECK(print_parts(record, &bound));
    keyring_digest(keyring, KEYRING_RECORD_MAC, generation, buf_text(&bound), digest);
    for (size_t i = 0; i < sizeof number; i++)
        number = number << 8 | digest[i];
    return number;
}

enum record_seal record_mac_verify(struct keyring *keyring, const struct record_parts *record, struct text mac,
                                   size_t *ret_generation)
{
    char storage[RECORD_PARTS_MAX_BYTES];
    struct buf bound = BUF_OVER(storage, sizeof storage);
    if (mac.len == 0)
        return RECORD_UNSEALED;
    if (!print_parts(record, &bound))
        return RECORD_ALTERED;
    for (size_t i = 0; i < keyring_generations(keyring); i++) {
        struct record_mac expected;
        print_mac(keyring, i, buf_text(&bound), &expected);
        if (!secure_equal(mac, (struct text){expected.text, RECORD_MAC_CHARS}))
            continue;
        if (ret_generation)
            *ret_generation = i;
        return RECORD_SEALED;
    }
    return RECORD_ALTERED;
}
