#include "core/secret.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>
#include <zlib.h>

TestSuite(secret, .fini = leak_guard);

/* Checksums computed by another program. */
static const struct {
    const char *text;
    enum key_kind kind;
    enum key_mode mode;
} KNOWN[] = {
    {"svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0ja", KEY_API, MODE_TEST},
    {"svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h", KEY_API, MODE_LIVE},
    {"svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa", KEY_DEVICE, MODE_LIVE},
    {"svc_dk_000000000000000000000000000000080tQEE3", KEY_DEVICE, MODE_LIVE},
};
enum { KNOWN_COUNT = sizeof KNOWN / sizeof KNOWN[0] };

static bool parses(const char *text, size_t len)
{
    enum key_kind kind;
    enum key_mode mode;
    return secret_parse((struct text){text, len}, &kind, &mode);
}

Test(secret, reads_known_ones)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        enum key_kind kind;
        enum key_mode mode;
        cr_assert(secret_parse(text_of(KNOWN[i].text), &kind, &mode), "%s", KNOWN[i].text);
        cr_assert_eq(kind, KNOWN[i].kind);
        cr_assert_eq(mode, KNOWN[i].mode);
    }
}

Test(secret, every_changed_character_is_noticed)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        for (size_t at = 0; at < strlen(KNOWN[i].text); at++)
            for (int c = 0; c < 256; c++) {
                char changed[SECRET_MAX_CHARS + 1];
                const size_t len = strlen(KNOWN[i].text);
                memcpy(changed, KNOWN[i].text, len);
                changed[at] = (char)c;
                cr_assert_eq(parses(changed, len), changed[at] == KNOWN[i].text[at], "%zu, byte %d", at, c);
            }
}

Test(secret, refuses_other_shapes)
{
    static const char *const CASES[] = {
        "",
        "svc_sk_test_",
        "svc_dk_",
        "Bearer svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0ja",
        "svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0ja ",
        " svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0ja",
        /* These have a right checksum and are still wrong. */
        "svc_sk_prod_0123456789ABCDEFGHIJKLMNOPQRSTUV48mSsJ",
        "svc_dk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0Qyk8J",
        "svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTU-44yVrq",
        "svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTU2FJyOE",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(parses(CASES[i], strlen(CASES[i])), "%s", CASES[i]);
    cr_assert_not(parses(NULL, 0));
}

Test(secret, what_is_minted_is_read_back)
{
    static const struct {
        enum key_kind kind;
        enum key_mode mode;
        const char *prefix;
    } CASES[] = {
        {KEY_API, MODE_TEST, "svc_sk_test_"}, {KEY_API, MODE_LIVE, "svc_sk_live_"}, {KEY_DEVICE, MODE_LIVE, "svc_dk_"}};
    for (size_t i = 0; i < 300; i++) {
        const size_t c = i % 3;
        struct secret secret, other;
        enum key_kind kind;
        enum key_mode mode;
        secret_mint(CASES[c].kind, CASES[c].mode, &secret);
        secret_mint(CASES[c].kind, CASES[c].mode, &other);
        cr_assert(text_starts_with(secret_text(&secret), text_of(CASES[c].prefix)));
        cr_assert(secret_parse(secret_text(&secret), &kind, &mode));
        cr_assert(kind == CASES[c].kind && mode == CASES[c].mode);
        cr_assert_not(text_equal(secret_text(&secret), secret_text(&other)));
        secret_wipe(&secret);
        cr_assert_eq(secret_text(&secret).len, 0);
    }
}

Test(secret, is_drawn_into_a_bucket)
{
    static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{9}, {8}};
    static const uint8_t DRAWN_BUCKETS[] = {0, 1, 77, 128, 255};
    struct keyring *keyring = keyring_create(MASTERS, 2);
    for (size_t i = 0; i < sizeof DRAWN_BUCKETS; i++) {
        struct secret secret, other;
        uint8_t digest[KEYRING_DIGEST_BYTES], again[KEYRING_DIGEST_BYTES];
        enum key_kind kind;
        enum key_mode mode;
        secret_draw(keyring, DRAWN_BUCKETS[i], KEY_API, MODE_TEST, &other, digest);
        secret_draw(keyring, DRAWN_BUCKETS[i], KEY_API, MODE_TEST, &secret, digest);
        cr_assert_eq(bucket_of_digest(digest), DRAWN_BUCKETS[i]);
        keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, secret_text(&secret), again);
        cr_assert_arr_eq(digest, again, sizeof digest, "the digest is that of the current master key");
        cr_assert(secret_parse(secret_text(&secret), &kind, &mode));
        cr_assert(kind == KEY_API && mode == MODE_TEST);
        cr_assert_not(text_equal(secret_text(&secret), secret_text(&other)));
    }
    keyring_destroy(keyring);
}

/* Each bit in each place has the same effect as in zlib. */
Test(secret, checksums_are_those_of_zlib)
{
    static const char DIGITS[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int i = 0; i < 3000; i++) {
        struct secret secret;
        char expected[SECRET_CHECKSUM_CHARS + 1] = "";
        secret_mint(i % 3 ? KEY_API : KEY_DEVICE, i % 3 == 1 ? MODE_TEST : MODE_LIVE, &secret);
        const size_t covered = strlen(secret.text) - SECRET_CHECKSUM_CHARS;
        unsigned long crc = crc32(0, (const Bytef *)secret.text, (uInt)covered);
        for (size_t at = SECRET_CHECKSUM_CHARS; at-- > 0; crc /= 62)
            expected[at] = DIGITS[crc % 62];
        cr_assert_str_eq(secret.text + covered, expected, "%s", secret.text);
    }
}

/* 64,000 draws, 1,032 of each expected, deviation 32: a modulo bias would give the first 8 characters 1,250. */
Test(secret, draws_each_character_equally_often)
{
    size_t counts[256] = {0};
    for (size_t i = 0; i < 2000; i++) {
        struct secret secret;
        secret_mint(KEY_DEVICE, MODE_LIVE, &secret);
        for (size_t at = 7; at < 7 + SECRET_RANDOM_CHARS; at++)
            counts[(unsigned char)secret.text[at]]++;
    }
    size_t distinct = 0;
    for (int c = 0; c < 256; c++) {
        distinct += counts[c] > 0;
        cr_assert(counts[c] == 0 || (counts[c] > 830 && counts[c] < 1230), "%c: %zu", c, counts[c]);
    }
    cr_assert_eq(distinct, 62);
}

#define WHOLE "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h"
#define DEVICE "svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa"

static void count_found(struct text t, size_t *ret_whole, size_t *ret_broken)
{
    struct text secret;
    enum secret_found found;

    *ret_whole = *ret_broken = 0;
    while ((found = secret_find(&t, &secret)) != SECRET_NONE) {
        cr_assert(text_starts_with(secret, TEXT("svc_")));
        cr_assert(found == SECRET_BROKEN || parses(secret.ptr, secret.len));
        *(found == SECRET_WHOLE ? ret_whole : ret_broken) += 1;
    }
    cr_assert_eq(t.len, 0);
}

Test(secret, is_found_in_any_text)
{
    static const struct {
        const char *text;
        size_t whole, broken;
    } CASES[] = {
        {"", 0, 0},
        {"s", 0, 0},
        {"no secret, svc_, nor svc_xk_", 0, 0},
        {WHOLE, 1, 0},
        {"curl -H 'X-API-Key: " WHOLE "' https://api.example.org", 1, 0},
        {"_" WHOLE "_", 1, 0},
        {"x" WHOLE "0", 1, 0},
        {"\xef\xbb\xbf\"" WHOLE "\",\r\n", 1, 0},
        {"\xe2\x80\x8b" WHOLE "\xc2\xa0", 1, 0},
        {WHOLE DEVICE, 2, 0},
        {"a;" DEVICE ";b\n" WHOLE "\n" WHOLE, 3, 0},
        {"svc_" WHOLE, 1, 0},
        {"svc_sk_live_" WHOLE, 1, 1},
        {"svc_sk_live_01234567\n89ABCDEFGHIJKLMNOPQRSTUV36BX0h", 0, 1},
        {"svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0", 0, 1},
        {"svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0i", 0, 1},
        {"svc_sk_liv", 0, 1},
        {"svc_dk_ and svc_sk_", 0, 2},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        size_t whole, broken;

        count_found(text_of(CASES[i].text), &whole, &broken);
        cr_expect_eq(whole, CASES[i].whole, "%s: %zu", CASES[i].text, whole);
        cr_expect_eq(broken, CASES[i].broken, "%s: %zu", CASES[i].text, broken);
        cr_expect_eq(secret_within(text_of(CASES[i].text)), CASES[i].whole > 0, "%s", CASES[i].text);
    }
    cr_expect_not(secret_within((struct text){0}));
}

/* What follows a text is not read: the bytes of a secret that end it are no whole one. */
Test(secret, is_found_within_the_text_only)
{
    const struct text all = TEXT("key=" WHOLE);
    size_t whole, broken;

    for (size_t len = 0; len < all.len; len++) {
        count_found((struct text){all.ptr, len}, &whole, &broken);
        cr_expect_eq(whole, 0, "%zu", len);
        cr_expect_eq(broken, len >= strlen("key=svc_sk_"), "%zu", len);
    }
}
