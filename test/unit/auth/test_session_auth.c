#include "auth/session_auth.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(session_auth, .fini = leak_guard);

static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                         11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                         22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};

Test(session_auth, mints_tokens_that_have_a_digest)
{
    struct keyring *keyring = keyring_create(MASTER, 1);
    struct session_token a, b;
    uint8_t digest_a[KEYRING_DIGEST_BYTES], digest_b[KEYRING_DIGEST_BYTES], again[KEYRING_DIGEST_BYTES];
    session_token_mint(&a);
    session_token_mint(&b);
    cr_assert_eq(strlen(a.text), SESSION_TOKEN_CHARS);
    cr_assert_str_neq(a.text, b.text);
    cr_assert(session_token_digest(keyring, text_of(a.text), digest_a));
    cr_assert(session_token_digest(keyring, text_of(b.text), digest_b));
    cr_assert(session_token_digest(keyring, text_of(a.text), again));
    cr_assert_arr_neq(digest_a, digest_b, sizeof digest_a);
    cr_assert_arr_eq(digest_a, again, sizeof digest_a);
    session_token_wipe(&a);
    for (size_t i = 0; i < sizeof a.text; i++)
        cr_assert_eq(a.text[i], 0);
    keyring_destroy(keyring);
}

Test(session_auth, refuses_what_is_no_token)
{
    static const char *const CASES[] = {
        "",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",   /* short */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", /* long */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",  /* stray bits: a second spelling */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        " AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    };
    struct keyring *keyring = keyring_create(MASTER, 1);
    uint8_t digest[KEYRING_DIGEST_BYTES];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(session_token_digest(keyring, text_of(CASES[i]), digest), "%s", CASES[i]);
    cr_assert(session_token_digest(keyring, TEXT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), digest));
    keyring_destroy(keyring);
}

Test(session_auth, csrf_tokens_belong_to_one_session)
{
    struct keyring *keyring = keyring_create(MASTER, 1);
    char token[CSRF_TOKEN_CHARS + 1];
    csrf_token_print(keyring, "ses_1", token);
    cr_assert_str_eq(token, "IZafQfvHIkjan6clJDh4BXloS1YUHdgWMFfo8wlUucI");
    cr_assert(csrf_token_matches(keyring, "ses_1", text_of(token)));
    cr_assert_not(csrf_token_matches(keyring, "ses_2", text_of(token)));
    cr_assert_not(csrf_token_matches(keyring, "ses_1", TEXT("")));
    cr_assert_not(csrf_token_matches(keyring, "ses_1", (struct text){NULL, 0}));
    cr_assert_not(csrf_token_matches(keyring, "ses_1", (struct text){token, CSRF_TOKEN_CHARS - 1}));
    cr_assert_not(csrf_token_matches(keyring, "ses_1", (struct text){token, CSRF_TOKEN_CHARS + 1}));
    for (size_t i = 0; i < CSRF_TOKEN_CHARS; i++) {
        token[i] ^= 1;
        cr_assert_not(csrf_token_matches(keyring, "ses_1", text_of(token)));
        token[i] ^= 1;
    }
    keyring_destroy(keyring);
}

Test(session_auth, an_origin_is_ours_or_absent)
{
    static const struct {
        const char *origin;
        bool matches;
    } CASES[] = {
        {"https://console.test", true},
        {"http://console.test", false},
        {"https://console.test:443", false},
        {"https://console.test:8443", false},
        {"https://console.test/", false},
        {"https://CONSOLE.test", false},
        {"https://console.test.evil.test", false},
        {"https://evilconsole.test", false},
        {"null", false},
        {"", false},
    };
    const struct text ours = TEXT("https://console.test");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(csrf_origin_matches(text_of(CASES[i].origin), true, ours), CASES[i].matches, "%s",
                     CASES[i].origin);
    cr_assert(csrf_origin_matches((struct text){NULL, 0}, false, ours));
    cr_assert_not(csrf_origin_matches(TEXT(""), true, TEXT("")));
}

Test(session_auth, throttle_tags_tell_kinds_and_values_apart)
{
    static const char *const CASES[][2] = {
        {"email", "a@b.test"}, {"email", "a@c.test"}, {"ip", "a@b.test"}, {"emaila", "@b.test"}, {"email", ""}};
    enum { COUNT = sizeof CASES / sizeof CASES[0] };
    struct keyring *keyring = keyring_create(MASTER, 1);
    char tags[COUNT][THROTTLE_TAG_CHARS + 1], again[THROTTLE_TAG_CHARS + 1];
    for (size_t i = 0; i < COUNT; i++) {
        throttle_tag(keyring, text_of(CASES[i][0]), text_of(CASES[i][1]), tags[i]);
        throttle_tag(keyring, text_of(CASES[i][0]), text_of(CASES[i][1]), again);
        cr_assert_eq(strlen(tags[i]), THROTTLE_TAG_CHARS);
        cr_assert_str_eq(tags[i], again);
        cr_assert_null(strstr(tags[i], "a@b"));
        for (size_t other = 0; other < i; other++)
            cr_assert_str_neq(tags[i], tags[other]);
    }
    keyring_destroy(keyring);
}
