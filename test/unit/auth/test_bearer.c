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
