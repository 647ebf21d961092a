#include "core/tombstone.h"
#include "base/check.h"
#include "base/encode.h"
#include "core/bucket.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum { FORM_BITS = 2, DAY_BITS = 16, MAC_SHIFT = FORM_BITS + DAY_BITS };
enum { DAY_MS = 24 * 60 * 60 * 1000, DAY_MAX = (1 << DAY_BITS) - 1 };
enum form { FORM_TEST, FORM_LIVE, FORM_DEVICE, FORM_COUNT };

enum { NAMED_BYTES = 27 };

void tombstone_print_name(const uint8_t digest[KEY_DIGEST_BYTES], struct buf *out)
{
    encode_base64url(out, &digest[KEY_DIGEST_BYTES - NAMED_BYTES], NAMED_BYTES);
}

bool tombstone_name_bucket(struct text name, uint8_t *ret_bucket)
{
    uint8_t digest[KEY_DIGEST_BYTES] = {0};

    if (!decode_base64url(name, digest + KEY_DIGEST_BYTES - NAMED_BYTES, NAMED_BYTES))
        return false;
    *ret_bucket = bucket_of_digest(digest);
    return true;
}

static uint64_t form_of(const struct key_record *key)
{
    return key->kind == KEY_DEVICE ? FORM_DEVICE : key->mode == MODE_LIVE ? FORM_LIVE : FORM_TEST;
}

/* After 2149 it is the last day that fits. */
static uint64_t day_of(const struct key_record *key)
{
    int64_t day = key->revoked_ms / DAY_MS;

    return day > DAY_MAX ? DAY_MAX : (uint64_t)day;
}

/* rest: what the MAC binds besides the digest. */
static uint64_t mac_of(struct keyring *keyring, size_t generation, const uint8_t digest[KEY_DIGEST_BYTES],
                       uint64_t rest)
{
    struct buf printed = BUF_FIXED(TOMBSTONE_TEXT_BYTES);

    buf_append_u64(&printed, rest);
    const struct text parts[] = {{(const char *)digest, KEY_DIGEST_BYTES}, buf_text(&printed)};
    const struct record_parts bound = {RECORD_TOMBSTONE, sizeof parts / sizeof *parts, parts};
    return record_mac_number(keyring, generation, &bound) >> MAC_SHIFT;
}

void tombstone_print(const struct key_record *key, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                     struct buf *out)
{
    uint64_t rest = day_of(key) << FORM_BITS | form_of(key);

    CHECK(key->revoked_ms > 0);
    buf_printf(out, "%" PRId64, (int64_t)(mac_of(keyring, 0, digest, rest) << MAC_SHIFT | rest));
}

/* Redis prints the number in one way only. */
static bool number_read(struct text t, uint64_t *ret_number)
{
    bool is_negative = t.len > 0 && t.ptr[0] == '-';
    uint64_t most = is_negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, size;

    if (!text_to_u64(is_negative ? text_skip(t, 1) : t, most, &size))
        return false;
    *ret_number = is_negative ? 0 - size : size;
    return true;
}

bool tombstone_read(struct text t, struct key_record *ret_key)
{
    uint64_t number, form;

    if (!number_read(t, &number))
        return false;
    form = number & ((1 << FORM_BITS) - 1);
    if (form >= FORM_COUNT)
        return false;
    memset(ret_key, 0, offsetof(struct key_record, name));
    ret_key->kind = form == FORM_DEVICE ? KEY_DEVICE : KEY_API;
    ret_key->mode = form == FORM_TEST ? MODE_TEST : MODE_LIVE;
    /* The last moment of the day: never 0. */
    ret_key->revoked_ms = ((int64_t)(number >> FORM_BITS & DAY_MAX) + 1) * DAY_MS - 1;
    return true;
}

enum record_seal tombstone_verify(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES])
{
    uint64_t number;

    if (!number_read(t, &number))
        return RECORD_ALTERED;
    for (size_t i = 0; i < keyring_generations(keyring); i++)
        if (mac_of(keyring, i, digest, number & (((uint64_t)1 << MAC_SHIFT) - 1)) == number >> MAC_SHIFT)
            return RECORD_SEALED;
    return RECORD_ALTERED;
}
