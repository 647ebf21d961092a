#include "core/device.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(device, .fini = leak_guard);

static struct keyring *make_keyring(void)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{9}};
    return keyring_create(MASTER, 1);
}

Test(device, user_codes_use_every_letter_alike)
{
    enum { DRAWS = 5000 };
    unsigned counts[256] = {0};
    for (size_t i = 0; i < DRAWS; i++) {
        struct user_code code, parsed;
        user_code_mint(&code);
        cr_assert_eq(strlen(code.text), USER_CODE_CHARS);
        cr_assert_eq(code.text[4], '-');
        cr_assert(user_code_parse(text_of(code.text), &parsed));
        cr_assert_str_eq(parsed.text, code.text);
        for (const char *at = code.text; *at; at++)
            counts[(unsigned char)*at]++;
    }
    /* 2,000 of each are expected, with a standard deviation of 44; allows six of them either way. */
    for (const char *letter = "BCDFGHJKLMNPQRSTVWXZ"; *letter; letter++) {
        unsigned count = counts[(unsigned char)*letter];
        cr_expect(count > 1736 && count < 2264, "%c: %u", *letter, count);
    }
}

Test(device, user_codes_as_people_type_them)
{
    static const struct {
        const char *typed, *code; /* NULL: refused */
    } CASES[] = {
        {"WDJB-MJHT", "WDJB-MJHT"},
        {"wdjbmjht", "WDJB-MJHT"},
        {" wDjB mJhT ", "WDJB-MJHT"},
        {"W-D-J-B--MJHT-", "WDJB-MJHT"},
        {"wdjb%20mjht", "WDJB-MJHT"},
        {"", NULL},
        {"-", NULL},
        {"WDJB-MJH", NULL},
        {"WDJB-MJHTT", NULL},
        {"WDJB-MJHA", NULL}, /* no vowels */
        {"WDJB-MJH1", NULL},
        {"WDJB_MJHT", NULL},
        {"WDJB%2DMJHT", NULL},
        {"WDJB-MJH\xc5\xa4", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct user_code code;
        bool valid = user_code_parse(text_of(CASES[i].typed), &code);
        cr_assert_eq(valid, CASES[i].code != NULL, "%s", CASES[i].typed);
        if (valid)
            cr_assert_str_eq(code.text, CASES[i].code);
    }
    struct user_code code;
    cr_assert_not(user_code_parse((struct text){"WDJB-MJH\0", 9}, &code));
    cr_assert_not(user_code_parse((struct text){0}, &code));
}

Test(device, digests_are_keyed)
{
    static const uint8_t OTHER[1][KEYRING_MASTER_BYTES] = {{8}};
    struct keyring *keyring = make_keyring(), *other = keyring_create(OTHER, 1);
    uint8_t a[KEYRING_DIGEST_BYTES], b[KEYRING_DIGEST_BYTES];
    struct user_code code;
    cr_assert(user_code_parse(TEXT("WDJB-MJHT"), &code));
    user_code_digest(keyring, &code, a);
    user_code_digest(other, &code, b);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    keyring_digest(keyring, KEYRING_DEVICE_CODE, 0, TEXT("WDJB-MJHT"), b);
    cr_assert_arr_eq(a, b, sizeof a);
    keyring_destroy(keyring);
    keyring_destroy(other);
}

Test(device, client_lists)
{
    static const struct {
        const char *list;
        bool valid;
    } CASES[] = {
        {"desktop-agent", true},
        {"a,b", true},
        {"a.b_c-1,Z", true},
        {"", false},
        {",", false},
        {"a,", false},
        {"a,,b", false},
        {"a, b", false},
        {"a b", false},
        {"a\n", false},
        {"a\"b", false},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_assert_eq(device_clients_valid(text_of(CASES[i].list)), CASES[i].valid, "%s", CASES[i].list);
}

Test(device, client_is_one_of_the_list)
{
    static const struct {
        const char *list, *client;
        bool known;
    } CASES[] = {
        {"desktop-agent", "desktop-agent", true},
        {"a,b", "a", true},
        {"a,b", "b", true},
        {"a,b", "a,b", false},
        {"a,b", "", false},
        {"", "", false},
        {"ab", "a", false},
        {"a", "ab", false},
        {"desktop-agent", "Desktop-Agent", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_assert_eq(device_clients_include(text_of(CASES[i].list), text_of(CASES[i].client)), CASES[i].known,
                     "%s of %s", CASES[i].client, CASES[i].list);
}
