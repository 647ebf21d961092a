#include "core/tombstone.h"

#include "core/bucket.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(tombstone, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{2}, {1}};
static const uint8_t DIGEST[KEY_DIGEST_BYTES] = {1, 2, 3}, OTHER[KEY_DIGEST_BYTES] = {1, 2, 4};

enum { DAY_MS = 86400000 };

static struct text print(const struct key_record *key, struct keyring *keyring, char storage[TOMBSTONE_TEXT_BYTES])
{
    struct buf out;

    buf_init_fixed(&out, storage, TOMBSTONE_TEXT_BYTES);
    tombstone_print(key, keyring, DIGEST, &out);
    cr_assert(!out.failed);
    return buf_text(&out);
}

Test(tombstone, tells_kind_mode_and_day)
{
    static const struct {
        enum key_kind kind;
        enum key_mode mode;
        int64_t revoked_ms, day;
    } CASES[] = {
        {KEY_API, MODE_TEST, 1, 0},
        {KEY_API, MODE_LIVE, INT64_C(20000) * DAY_MS, 20000},
        {KEY_DEVICE, MODE_LIVE, INT64_C(20001) * DAY_MS - 1, 20000},
        {KEY_API, MODE_LIVE, INT64_C(99999) * DAY_MS, 65535},
    };
    struct keyring *keyring = keyring_create(MASTERS, 1);

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct key_record key = {.kind = CASES[i].kind, .mode = CASES[i].mode, .revoked_ms = CASES[i].revoked_ms};
        char storage[TOMBSTONE_TEXT_BYTES];
        struct text t = print(&key, keyring, storage);
        struct key_record read;

        cr_assert(tombstone_read(t, &read), "case %zu: %.*s", i, TEXT_ARG(t));
        cr_expect(read.kind == CASES[i].kind && read.mode == CASES[i].mode);
        cr_expect_eq(read.revoked_ms / DAY_MS, CASES[i].day);
        cr_expect(key_is_tombstone(&read) && read.account.text[0] == '\0' && read.name_len == 0);
        cr_expect_eq(tombstone_verify(t, keyring, DIGEST), RECORD_SEALED);
    }
    keyring_destroy(keyring);
}

/* Each bit but those of the MAC's own is bound, and so is the digest. */
Test(tombstone, is_bound_by_a_mac)
{
    struct keyring *old = keyring_create(MASTERS + 1, 1), *both = keyring_create(MASTERS, 2);
    const struct key_record key = {.kind = KEY_API, .mode = MODE_LIVE, .revoked_ms = INT64_C(20000) * DAY_MS};
    char storage[TOMBSTONE_TEXT_BYTES], altered[TOMBSTONE_TEXT_BYTES];
    struct text t = print(&key, old, storage);
    int64_t number = strtoll(storage, NULL, 10);

    cr_expect_eq(tombstone_verify(t, old, DIGEST), RECORD_SEALED);
    cr_expect_eq(tombstone_verify(t, both, DIGEST), RECORD_SEALED);
    cr_expect_eq(tombstone_verify(t, old, OTHER), RECORD_ALTERED);
    for (unsigned bit = 0; bit < 64; bit++) {
        int len = snprintf(altered, sizeof altered, "%lld", (long long)(number ^ (int64_t)(UINT64_C(1) << bit)));

        cr_expect_eq(tombstone_verify((struct text){altered, (size_t)len}, old, DIGEST), RECORD_ALTERED, "bit %u", bit);
    }
    t = print(&key, both, storage);
    cr_expect_eq(tombstone_verify(t, old, DIGEST), RECORD_ALTERED);
    keyring_destroy(old);
    keyring_destroy(both);
}

/* Which partition a check asks is told by the digest; `store copy` has the name alone. */
Test(tombstone, name_tells_the_bucket)
{
    char storage[TOMBSTONE_NAME_CHARS];
    uint8_t digest[KEY_DIGEST_BYTES] = {1, 2, 3}, bucket;
    struct buf out;

    digest[KEY_DIGEST_BYTES - 1] = 200;
    buf_init_fixed(&out, storage, sizeof storage);
    tombstone_print_name(digest, &out);
    cr_assert(!out.failed && out.len == TOMBSTONE_NAME_CHARS);
    cr_assert(tombstone_name_bucket(buf_text(&out), &bucket));
    cr_expect_eq(bucket, bucket_of_digest(digest));
    cr_expect(!tombstone_name_bucket((struct text){storage, sizeof storage - 1}, &bucket));
    cr_expect(!tombstone_name_bucket(TEXT("another"), &bucket));
}

Test(tombstone, other_texts_are_none)
{
    static const char *const TEXTS[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "01",
                                        "1 ",
                                        "12a",
                                        "9223372036854775808",
                                        "1.0",
                                        "0x1",
                                        "3",
                                        "key_1",
                                        "-9223372036854775809"};
    struct key_record read;

    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        cr_expect(!tombstone_read(text_of(TEXTS[i]), &read), "\"%s\"", TEXTS[i]);
    cr_expect(tombstone_read(TEXT("-9223372036854775808"), &read));
}
