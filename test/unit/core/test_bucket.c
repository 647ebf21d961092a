#include "core/bucket.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(bucket, .fini = leak_guard);

/* Computed by other programs. Stores were written with these: they never change. */
Test(bucket, accounts_have_fixed_ones)
{
    static const struct {
        struct id account;
        uint8_t bucket;
    } CASES[] = {
        {{"acct_01hgw2bbg00000000000000000"}, 255},
        {{"acct_01jd6z9k3m7q4v8x2n5p0r1s6t"}, 249},
        {{"acct_7zzzzzzzzzzzzzzzzzzzzzzzzz"}, 52},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(bucket_of_account(&CASES[i].account), CASES[i].bucket, "%s", CASES[i].account.text);
}

Test(bucket, texts_have_fixed_ones)
{
    cr_assert_eq(bucket_of_text(TEXT("owner@clinic.example")), 62);
    cr_assert_eq(bucket_of_text(TEXT("a@b.c")), 93);
    cr_assert_eq(bucket_of_text(TEXT("m\xc3\xbclle@example.org")), 60);
}

Test(bucket, of_a_digest_is_its_last_byte)
{
    uint8_t digest[KEYRING_DIGEST_BYTES] = {1, 2, 3};
    digest[KEYRING_DIGEST_BYTES - 1] = 200;
    cr_assert_eq(bucket_of_digest(digest), 200);
}

/* 256,000 accounts, 1,000 of each bucket expected, deviation 32. */
Test(bucket, accounts_spread_evenly)
{
    static unsigned counts[BUCKETS];
    for (int i = 0; i < 1000 * BUCKETS; i++) {
        const struct id account = id_mint(ID_ACCOUNT, 1769860800000 + i);
        counts[bucket_of_account(&account)]++;
    }
    for (int i = 0; i < BUCKETS; i++)
        cr_assert(counts[i] > 750 && counts[i] < 1250, "bucket %d: %u", i, counts[i]);
}
