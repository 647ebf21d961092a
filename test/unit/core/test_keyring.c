#include "core/keyring.h"
#include "base/encode.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <openssl/hmac.h>

#include <string.h>

TestSuite(keyring, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {
    {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
    {0xaa, 0xbb},
};

static void assert_digest(struct keyring *keyring, enum keyring_purpose purpose, size_t generation, const char *hex)
{
    uint8_t expected[KEYRING_DIGEST_BYTES], digest[KEYRING_DIGEST_BYTES];
    cr_assert(decode_hex(text_of(hex), expected, sizeof expected));
    keyring_digest(keyring, purpose, generation, TEXT("svc_sk_test_abc"), digest);
    cr_assert_arr_eq(digest, expected, sizeof digest, "purpose %d", purpose);
}

/* HKDF (RFC 5869) without a salt, for one block of output. */
static void derive_key_digest_key(const uint8_t master[KEYRING_MASTER_BYTES], uint8_t ret_key[32])
{
    static const char INFO[] = "chatelaine 1 key digest\x01";
    const uint8_t salt[32] = {0};
    uint8_t pseudorandom[32];
    cr_assert_not_null(HMAC(EVP_sha256(), salt, sizeof salt, master, KEYRING_MASTER_BYTES, pseudorandom, NULL));
    cr_assert_not_null(HMAC(EVP_sha256(), pseudorandom, sizeof pseudorandom, (const unsigned char *)INFO,
                            sizeof INFO - 1, ret_key, NULL));
}

/* Computed by another program from RFC 5869 and RFC 2104. Stored data depends on them: they must never change. */
static const char *const KNOWN[KEYRING_PURPOSES] = {
    [KEYRING_KEY_DIGEST] = "cbcf4a70c05a26e916c51c5a5628af7e0d8f6a880c19a384f2adf5ab3e6b1a25",
    [KEYRING_SESSION_DIGEST] = "038106e24c5934116a7596bc8bd7e7c883c640511a368d1ed2b02c916e0e15a2",
    [KEYRING_DEVICE_CODE] = "03b80990379b3e3b065ffadfd9474b49f3e2f3c0de4132bd9cb682b1954107f7",
    [KEYRING_CSRF] = "5d657444b4fbcfcb1c3f1cc5d05346c03985f6fb0c770585dac4e9f193761220",
    [KEYRING_THROTTLE] = "9b633744ac9d8008bbb517bb19e0cde2f636dff46647de4b31ddf10b84e5cc86",
    [KEYRING_PASSWORD] = "0d7124f7783afae9d4854016e6f1b98eda192a02cce5778aa89efe5944e34650",
    [KEYRING_RECORD_MAC] = "475c8ec6a63c00914928387b15a01fab7b81bf7ab8aa878ee66d992469b56121",
    [KEYRING_NAME] = "364cce1dde8dfb0fb839c05efb0943135d3b62bbd85eb2b442f1d3a7c5334e7e",
    [KEYRING_TICKET] = "f7b0d537f6614cd57df1574b5eba203bc4271decf0639e9ebb3875eb61054f6c",
    [KEYRING_AUDIT_LOG] = "bf775ef2b26ecf5fb798b213e9044674ad99594ba1606ee3bc14e46db71386cd",
    [KEYRING_RECOVERY] = "45c852e0f2831a49dec28a932cd01ceff715cf4da8fd454d98a53a838c16c8bf",
    [KEYRING_LINK] = "668e3718775361ca06c36727f1225c336fc44a5e121a7f9f229a42b2126c739e",
    [KEYRING_CANARY] = "46aa5d221d500045d03951ccf1e01e8865a24c2654865fab8b20b34c4c789a2f",
};

Test(keyring, digests_are_known_and_repeatable)
{
    struct keyring *keyring = keyring_create(MASTERS, 1);
    for (int round = 0; round < 3; round++)
        for (int purpose = 0; purpose < KEYRING_PURPOSES; purpose++)
            assert_digest(keyring, (enum keyring_purpose)purpose, 0, KNOWN[purpose]);
    keyring_destroy(keyring);
}

Test(keyring, names_master_keys)
{
    struct keyring *keyring = keyring_create(MASTERS, 2), *alone = keyring_create(MASTERS + 1, 1);
    cr_assert_eq(keyring_name(keyring, 0).len, KEYRING_NAME_CHARS);
    cr_assert(text_equal(keyring_name(keyring, 1), keyring_name(alone, 0)));
    cr_assert_not(text_equal(keyring_short_name(keyring, 0), keyring_short_name(keyring, 1)));
    cr_assert(text_starts_with(keyring_name(keyring, 0), keyring_short_name(keyring, 0)));
    cr_assert_eq(keyring_short_name(keyring, 0).len, KEYRING_SHORT_NAME_CHARS);
    keyring_destroy(keyring);
    keyring_destroy(alone);
}

Test(keyring, a_retired_master_gives_what_it_gave_before)
{
    const uint8_t swapped[2][KEYRING_MASTER_BYTES] = {{0xaa, 0xbb},
                                                      {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};
    uint8_t current[KEYRING_DIGEST_BYTES], retired[KEYRING_DIGEST_BYTES];
    struct keyring *keyring = keyring_create(swapped, 2);
    cr_assert_eq(keyring_generations(keyring), 2);
    assert_digest(keyring, KEYRING_KEY_DIGEST, 1, KNOWN[KEYRING_KEY_DIGEST]);
    keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, TEXT("x"), current);
    keyring_digest(keyring, KEYRING_KEY_DIGEST, 1, TEXT("x"), retired);
    cr_assert_arr_neq(current, retired, sizeof current);
    keyring_destroy(keyring);
}

Test(keyring, digests_empty_and_binary_text)
{
    struct keyring *keyring = keyring_create(MASTERS, 1);
    uint8_t empty[KEYRING_DIGEST_BYTES], nul[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_CSRF, 0, (struct text){NULL, 0}, empty);
    keyring_digest(keyring, KEYRING_CSRF, 0, (struct text){"\0", 1}, nul);
    cr_assert_arr_neq(empty, nul, sizeof empty);
    keyring_destroy(keyring);
    keyring_destroy(NULL);
}

enum { PLAIN_BYTES = 20, SEALED_BYTES = PLAIN_BYTES + KEYRING_SEAL_OVERHEAD };
static const uint8_t PLAIN[PLAIN_BYTES] = "a secret of a user!";

/* Messages around the lengths at which SHA-256 needs another block, compared with the library's HKDF and HMAC. */
Test(keyring, digests_are_hmacs_of_any_length)
{
    char message[200];
    uint8_t key[32], expected[KEYRING_DIGEST_BYTES], digest[KEYRING_DIGEST_BYTES];
    struct keyring *keyring = keyring_create(MASTERS, 1);
    derive_key_digest_key(MASTERS[0], key);
    for (size_t len = 0; len <= sizeof message; len++) {
        memset(message, (int)len, sizeof message);
        keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, (struct text){message, len}, digest);
        cr_assert_not_null(HMAC(EVP_sha256(), key, sizeof key, (unsigned char *)message, len, expected, NULL));
        cr_assert_arr_eq(digest, expected, sizeof digest, "%zu bytes", len);
        keyring_inner(keyring, KEYRING_KEY_DIGEST, 0, (struct text){message, len}, digest);
        cr_assert_arr_neq(digest, expected, sizeof digest);
        keyring_outer(keyring, KEYRING_KEY_DIGEST, 0, digest, digest);
        cr_assert_arr_eq(digest, expected, sizeof digest, "%zu bytes in two steps", len);
    }
    keyring_destroy(keyring);
}

Test(keyring, opens_what_it_sealed)
{
    struct keyring *keyring = keyring_create(MASTERS, 2);
    uint8_t sealed[SEALED_BYTES], again[SEALED_BYTES], plain[PLAIN_BYTES];
    keyring_seal(keyring, TEXT("usr_1"), PLAIN, PLAIN_BYTES, sealed);
    keyring_seal(keyring, TEXT("usr_1"), PLAIN, PLAIN_BYTES, again);
    cr_assert_arr_neq(sealed, again, SEALED_BYTES);
    cr_assert(keyring_open(keyring, TEXT("usr_1"), sealed, SEALED_BYTES, plain));
    cr_assert_arr_eq(plain, PLAIN, PLAIN_BYTES);
    cr_assert(keyring_open(keyring, TEXT("usr_1"), again, SEALED_BYTES, plain));
    keyring_destroy(keyring);
}

Test(keyring, every_changed_bit_of_a_seal_is_noticed)
{
    struct keyring *keyring = keyring_create(MASTERS, 2);
    uint8_t sealed[SEALED_BYTES], plain[PLAIN_BYTES];
    keyring_seal(keyring, TEXT("usr_1"), PLAIN, PLAIN_BYTES, sealed);
    for (size_t bit = 0; bit < 8 * SEALED_BYTES; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_not(keyring_open(keyring, TEXT("usr_1"), sealed, SEALED_BYTES, plain), "bit %zu", bit);
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t bytes = 0; bytes < SEALED_BYTES; bytes++)
        cr_assert_not(keyring_open(keyring, TEXT("usr_1"), sealed, bytes, plain), "%zu bytes", bytes);
    cr_assert(keyring_open(keyring, TEXT("usr_1"), sealed, SEALED_BYTES, plain));
    keyring_destroy(keyring);
}

Test(keyring, a_seal_is_bound_to_its_user_and_master)
{
    struct keyring *keyring = keyring_create(MASTERS, 1), *later, *stranger;
    const uint8_t rotated[2][KEYRING_MASTER_BYTES] = {{1},
                                                      {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};
    uint8_t sealed[SEALED_BYTES], plain[PLAIN_BYTES];
    keyring_seal(keyring, TEXT("usr_1"), PLAIN, PLAIN_BYTES, sealed);
    later = keyring_create(rotated, 2);
    stranger = keyring_create(rotated, 1);
    cr_assert_not(keyring_open(keyring, TEXT("usr_2"), sealed, SEALED_BYTES, plain));
    cr_assert_not(keyring_open(keyring, TEXT(""), sealed, SEALED_BYTES, plain));
    cr_assert(keyring_open(later, TEXT("usr_1"), sealed, SEALED_BYTES, plain));
    cr_assert_arr_eq(plain, PLAIN, PLAIN_BYTES);
    cr_assert_not(keyring_open(stranger, TEXT("usr_1"), sealed, SEALED_BYTES, plain));
    keyring_destroy(stranger);
    keyring_destroy(later);
    keyring_destroy(keyring);
}

#define HEX_64 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define BASE64_32 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

Test(keyring, reads_a_master_key)
{
    static const struct {
        const char *text;
        bool valid;
    } CASES[] = {
        {HEX_64, true},
        {HEX_64 "\n", true},
        {" \r\n\t" HEX_64 " \n\n", true},
        {BASE64_32, true},
        {BASE64_32 "\n", true},
        {"", false},
        {"\n", false},
        {HEX_64 "0", false},
        {HEX_64 " 00", false},
        {"00010203", false},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==", false},
        {"password", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        uint8_t master[KEYRING_MASTER_BYTES];
        cr_assert_eq(keyring_parse_master(text_of(CASES[i].text), master), CASES[i].valid, "%s", CASES[i].text);
        if (CASES[i].valid)
            cr_assert_arr_eq(master, MASTERS[0], sizeof master);
    }
}
