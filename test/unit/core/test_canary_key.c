#include "core/canary_key.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(canary_key, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{9}, {8}};
#define NONCE TEXT("00112233445566778899aabbccddeeff")

Test(canary_key, has_an_account_in_every_bucket)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        struct id account, parsed;

        canary_account((uint8_t)bucket, &account);
        cr_assert_eq(bucket_of_account(&account), bucket);
        cr_assert(id_parse(ID_ACCOUNT, id_text(&account), &parsed), "%s", account.text);
        cr_assert(canary_owns(&account));
        cr_assert_eq(id_time_ms(&account), 0, "no id of today");
    }
}

Test(canary_key, owns_no_account_of_a_customer)
{
    static const char *const OTHERS[] = {"acct_01hgw2bbg00000000000000000", "acct_00000000000000000000canary",
                                         "acct_0000000000canar0000000000y"};

    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct id account;

        cr_assert(id_parse(ID_ACCOUNT, text_of(OTHERS[i]), &account), "%s", OTHERS[i]);
        cr_expect_not(canary_owns(&account), "%s", OTHERS[i]);
    }
}

/* Every node computes it, in every version. By Python's hmac, hashlib and zlib. */
Test(canary_key, has_a_secret_that_every_node_computes)
{
    struct keyring *keyring = keyring_create(MASTERS, 2);
    struct secret secret, again, other;
    enum key_kind kind;
    enum key_mode mode;

    cr_assert(canary_secret(keyring, 0, NONCE, &secret) && canary_secret(keyring, 0, NONCE, &again));
    cr_expect_str_eq(secret.text, "svc_sk_test_bwV5bqIj1vckgfPNDMxxT4dlN5lI98N20R8NsA");
    cr_expect(text_equal(secret_text(&secret), secret_text(&again)));
    cr_expect(secret_parse(secret_text(&secret), &kind, &mode) && kind == KEY_API && mode == MODE_TEST);
    cr_assert(canary_secret(keyring, 1, NONCE, &other));
    cr_expect_not(text_equal(secret_text(&secret), secret_text(&other)), "another master key, another secret");
    cr_assert(canary_secret(keyring, 0, TEXT("00112233445566778899aabbccddeefe"), &other));
    cr_expect_not(text_equal(secret_text(&secret), secret_text(&other)), "another nonce, another secret");
    cr_expect_not(canary_secret(keyring, 0, TEXT("0011"), &other));
    keyring_destroy(keyring);
}

Test(canary_key, draws_into_a_bucket)
{
    static const uint8_t DRAWN_BUCKETS[] = {0, 1, 128, 255};
    struct keyring *keyring = keyring_create(MASTERS, 2);

    for (size_t i = 0; i < sizeof DRAWN_BUCKETS; i++) {
        char nonce[CANARY_NONCE_CHARS + 1], other_nonce[CANARY_NONCE_CHARS + 1];
        uint8_t digest[KEYRING_DIGEST_BYTES], again[KEYRING_DIGEST_BYTES];
        struct secret secret, computed;

        canary_draw(keyring, DRAWN_BUCKETS[i], other_nonce, &secret, digest);
        canary_draw(keyring, DRAWN_BUCKETS[i], nonce, &secret, digest);
        cr_expect_str_neq(nonce, other_nonce);
        cr_expect_eq(bucket_of_digest(digest), DRAWN_BUCKETS[i]);
        cr_assert(canary_secret(keyring, 0, text_of(nonce), &computed));
        cr_expect(text_equal(secret_text(&secret), secret_text(&computed)), "others compute the same secret");
        keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, secret_text(&secret), again);
        cr_expect_arr_eq(digest, again, sizeof digest);
    }
    keyring_destroy(keyring);
}
