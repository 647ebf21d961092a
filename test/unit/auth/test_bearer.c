#include "auth/bearer.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(bearer, .fini = leak_guard);

Test(bearer, reads_authorization)
{
    static const struct {
        const char *header;
        enum bearer_result result;
        const char *token;
    } CASES[] = {
        {NULL, BEARER_ABSENT, NULL},
        {"Bearer abc", BEARER_TOKEN, "abc"},
        {"bearer abc", BEARER_TOKEN, "abc"},
        {"BEARER abc", BEARER_TOKEN, "abc"},
        {"Bearer    abc", BEARER_TOKEN, "abc"},
        {" Bearer abc\t", BEARER_TOKEN, "abc"},
        {"Bearer a-b._~+/9==", BEARER_TOKEN, "a-b._~+/9=="},
        {"", BEARER_MALFORMED, NULL},
        {" ", BEARER_MALFORMED, NULL},
        {"Bearer", BEARER_MALFORMED, NULL},
        {"Bearer ", BEARER_MALFORMED, NULL},
        {"Bearer\tabc", BEARER_MALFORMED, NULL},
        {"Bearer =", BEARER_MALFORMED, NULL},
        {"Bearer ab=c", BEARER_MALFORMED, NULL},
        {"Bearer abc def", BEARER_MALFORMED, NULL},
        {"Bearer abc,", BEARER_MALFORMED, NULL},
        {"Bearer abc, Bearer def", BEARER_MALFORMED, NULL},
        {"Bearer \"abc\"", BEARER_MALFORMED, NULL},
        {"Bearer ab\xc3\xa9", BEARER_MALFORMED, NULL},
        {"Bearer, abc", BEARER_MALFORMED, NULL},
        {"Bearer:abc", BEARER_MALFORMED, NULL},
        {", Bearer abc", BEARER_MALFORMED, NULL},
        {"Basic dXNlcjpwYXNz", BEARER_OTHER, NULL},
        {"Bearerx abc", BEARER_OTHER, NULL},
        {"svc_sk_test_abc", BEARER_OTHER, NULL},
        {"Digest username=\"a\", realm=\"b\"", BEARER_OTHER, NULL},
        {"Basic a\x01", BEARER_MALFORMED, NULL},
        {"Basic a\x7f", BEARER_MALFORMED, NULL},
        {"Basic \xff", BEARER_MALFORMED, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct text token = {NULL, 0};
        cr_assert_eq(bearer_read(text_of(CASES[i].header), &token), CASES[i].result, "case %zu: %s", i,
                     CASES[i].header);
        cr_assert(text_equal(token, text_of(CASES[i].token)), "case %zu", i);
    }
    struct text token;
    cr_assert_eq(bearer_read((struct text){"Bearer a\0b", 10}, &token), BEARER_MALFORMED);
}

#define SECRET "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h"

Test(bearer, says_what_is_wrong)
{
    static const struct {
        const char *header, *says;
    } CASES[] = {
        {"", "is empty: is the variable set?"},
        {" ", "is empty"},
        {"Bearer", "no token after Bearer: is the variable set?"},
        {"bearer  ", "no token after Bearer"},
        {"Bearer \"" SECRET "\"", "quotes around the key"},
        {"\"Bearer " SECRET "\"", "quotes around"},
        {"\"" SECRET "\"", "quotes around"},
        {"Bearer '" SECRET "'", "quotes around"},
        {"Bearer \xe2\x80\x9c" SECRET "\xe2\x80\x9d", "quotes around"},
        {"Bearer " SECRET "\"", "quotes around"},
        {"Bearer <" SECRET ">", "brackets around the key"},
        {"<" SECRET ">", "brackets around the key"},
        {"Bearer ${API_KEY}", "was not replaced"},
        {"Bearer $API_KEY", "was not replaced"},
        {"Bearer {{token}}", "was not replaced"},
        {"Bearer <API_KEY>", "was not replaced"},
        {"Bearer %API_KEY%", "was not replaced"},
        {"Bearer Bearer " SECRET, "Bearer twice"},
        {"Bearer \xef\xbb\xbf" SECRET, "U+FEFF, at position 1 of the token"},
        {"\xef\xbb\xbf"
         "Bearer " SECRET,
         "U+FEFF, at position 1 of its value"},
        {"Bearer " SECRET "\xc2\xa0", "U+00A0, at position 51 of the token"},
        {"Bearer " SECRET "%0A", "U+0025, at position 51"},
        {"Bearer " SECRET "\xff", "U+00FF, at position 51"},
        {"Bearer " SECRET "\xf0\x9f\x94\x91", "U+1F511, at position 51"},
        {"Bearer abc, Bearer def", "U+002C, at position 4"},
        {"Bearer:abc", "U+003A, at position 1"},
        {"Bearer ab=c", "U+003D, at position 3"},
        {"Bearer =", "U+003D, at position 1"},
        {"Basic a\x01", "U+0001, at position 8 of its value"},
        {", Bearer abc", "does not begin with the word Bearer"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char storage[BEARER_WHY_BYTES];
        struct text token;
        struct buf out;

        cr_expect_eq(bearer_read(text_of(CASES[i].header), &token), BEARER_MALFORMED, "%s", CASES[i].header);
        buf_init_fixed(&out, storage, sizeof storage);
        bearer_explain(text_of(CASES[i].header), &out);
        buf_append_char(&out, '\0');
        cr_assert_not(out.failed, "%s", CASES[i].header);
        cr_expect(strstr(storage, CASES[i].says), "%s: %s", CASES[i].header, storage);
        cr_expect_not(strstr(storage, "svc_"), "%s", storage);
    }
}
