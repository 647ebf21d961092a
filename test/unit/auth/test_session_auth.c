#include "auth/session_auth.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(session_auth, .fini = leak_guard);

static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                         11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                         22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};

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

Test(session_auth, a_csrf_token_of_a_retired_master_key_matches)
{
    static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{7}, {8}};
    struct keyring *both = keyring_create(MASTERS, 2), *retired = keyring_create(MASTERS + 1, 1);
    char token[CSRF_TOKEN_CHARS + 1];
    csrf_token_print(retired, "sid", token);
    cr_expect(csrf_token_matches(both, "sid", text_of(token)));
    cr_expect_not(csrf_token_matches(both, "dis", text_of(token)));
    csrf_token_print(both, "sid", token);
    cr_expect(csrf_token_matches(both, "sid", text_of(token)));
    cr_expect_not(csrf_token_matches(retired, "sid", text_of(token)));
    keyring_destroy(both);
    keyring_destroy(retired);
}
