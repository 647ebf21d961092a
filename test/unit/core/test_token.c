#include "core/token.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(token, .fini = leak_guard);

static struct keyring *make_keyring(void)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{9}};
    return keyring_create(MASTER, 1);
}

Test(token, tokens_are_of_the_form_that_is_taken_and_differ)
{
    enum { TOKENS = 50 };
    struct keyring *keyring = make_keyring();
    struct token tokens[TOKENS];
    uint8_t digests[TOKENS][KEYRING_DIGEST_BYTES], again[KEYRING_DIGEST_BYTES];
    for (size_t i = 0; i < TOKENS; i++) {
        token_mint(&tokens[i]);
        cr_assert_eq(strlen(tokens[i].text), TOKEN_CHARS);
        cr_assert(token_digest(keyring, KEYRING_DEVICE_CODE, text_of(tokens[i].text), digests[i]));
        for (size_t j = 0; j < i; j++) {
            cr_assert_str_neq(tokens[i].text, tokens[j].text);
            cr_assert_arr_neq(digests[i], digests[j], sizeof digests[i]);
        }
    }
    cr_assert(token_digest(keyring, KEYRING_DEVICE_CODE, text_of(tokens[0].text), again));
    cr_assert_arr_eq(digests[0], again, sizeof again);
    cr_assert(token_digest(keyring, KEYRING_SESSION_DIGEST, text_of(tokens[0].text), again));
    cr_assert_arr_neq(digests[0], again, sizeof again, "what serves one purpose serves no other");
    keyring_destroy(keyring);
}

Test(token, is_drawn_into_a_bucket)
{
    static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{7}, {8}};
    static const uint8_t DRAWN_BUCKETS[] = {0, 1, 77, 128, 255};
    struct keyring *keyring = keyring_create(MASTERS, 2);
    for (size_t i = 0; i < sizeof DRAWN_BUCKETS; i++) {
        struct token token, other;
        uint8_t digest[KEYRING_DIGEST_BYTES], again[KEYRING_DIGEST_BYTES];
        token_draw(keyring, DRAWN_BUCKETS[i], KEYRING_LINK, &other, digest);
        token_draw(keyring, DRAWN_BUCKETS[i], KEYRING_LINK, &token, digest);
        cr_assert_eq(bucket_of_digest(digest), DRAWN_BUCKETS[i]);
        cr_assert(token_digest(keyring, KEYRING_LINK, text_of(token.text), again), "it has the form of a token");
        cr_assert_arr_eq(digest, again, sizeof digest, "the digest is of that purpose and the current master key");
        cr_assert_str_neq(token.text, other.text);
    }
    keyring_destroy(keyring);
}

Test(token, is_wiped_whole)
{
    struct token token;
    token_mint(&token);
    token_wipe(&token);
    for (size_t i = 0; i < sizeof token.text; i++)
        cr_assert_eq(token.text[i], 0);
}

Test(token, refuses_what_is_none)
{
    static const char *const CASES[] = {
        "",
        "a",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",   /* too short */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", /* too long */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",  /* stray bits: a second spelling */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        " AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "WDJB-MJHT",
    };
    struct keyring *keyring = make_keyring();
    uint8_t digest[KEYRING_DIGEST_BYTES];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(token_digest(keyring, KEYRING_SESSION_DIGEST, text_of(CASES[i]), digest), "%s", CASES[i]);
    cr_assert(
        token_digest(keyring, KEYRING_SESSION_DIGEST, TEXT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), digest));
    keyring_destroy(keyring);
}

Test(token, is_known_by_a_digest_of_each_master_key)
{
    static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{7}, {8}};
    struct keyring *both = keyring_create(MASTERS, 2), *retired = keyring_create(MASTERS + 1, 1);
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct token_digests digests;
    struct token token;
    token_mint(&token);
    cr_assert(token_digests(both, KEYRING_SESSION_DIGEST, text_of(token.text), &digests));
    cr_assert_eq(digests.count, 2);
    cr_assert(token_digest(both, KEYRING_SESSION_DIGEST, text_of(token.text), digest));
    cr_assert_arr_eq(digests.of[0], digest, sizeof digest);
    cr_assert(token_digest(retired, KEYRING_SESSION_DIGEST, text_of(token.text), digest));
    cr_assert_arr_eq(digests.of[1], digest, sizeof digest);
    cr_assert_not(token_digests(both, KEYRING_SESSION_DIGEST, TEXT("short"), &digests));
    keyring_destroy(both);
    keyring_destroy(retired);
}
