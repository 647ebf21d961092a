#include "core/recovery_code.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(recovery_code, .fini = leak_guard);

Test(recovery_code, minted_printed_and_read_again)
{
    struct recovery_code code, read;
    char text[RECOVERY_CODE_TEXT_BYTES];
    unsigned seen[256] = {0}, letters = 0;

    for (int round = 0; round < 200; round++) {
        recovery_code_mint(&code);
        cr_assert_eq(strlen(code.text), RECOVERY_CODE_CHARS);
        cr_assert_eq(strspn(code.text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), RECOVERY_CODE_CHARS, "%s", code.text);
        for (const char *c = code.text; *c; c++)
            seen[(unsigned char)*c]++;
        recovery_code_print(&code, text);
        cr_assert_eq(strlen(text), RECOVERY_CODE_TEXT_BYTES - 1);
        cr_assert(text[4] == '-' && text[9] == '-' && text[14] == '-', "%s", text);
        cr_assert(recovery_code_parse(text_of(text), &read));
        cr_assert_str_eq(read.text, code.text);
    }
    for (size_t i = 0; i < 256; i++)
        letters += seen[i] > 0;
    cr_assert_eq(letters, 32, "every character of the alphabet occurs");
}

Test(recovery_code, read_however_it_was_typed)
{
    static const char *const SAME[] = {"0111-ABCD-EFGH-JKMN", "0111abcdefghjkmn", "OiIl abcd efgh jkmn",
                                       "o-L-1-I-A B C D EFGHJKMN"};
    static const char *const NONE[] = {"",
                                       "0111-ABCD-EFGH-JKM",
                                       "0111-ABCD-EFGH-JKMNP",
                                       "0111-ABCD-EFGH-JKMU",
                                       "0111_ABCD_EFGH_JKMN",
                                       "0111-ABCD-EFGH-JKM\xc3\x84"};
    struct recovery_code code;

    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        cr_assert(recovery_code_parse(text_of(SAME[i]), &code), "%s", SAME[i]);
        cr_expect_str_eq(code.text, "0111ABCDEFGHJKMN", "%s", SAME[i]);
    }
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        cr_expect_not(recovery_code_parse(text_of(NONE[i]), &code), "%s", NONE[i]);
    cr_expect_not(recovery_code_parse((struct text){"0111ABCDEFGHJKM\0", 16}, &code), "a NUL is no character");
}

/* A digest that was moved to another user fits nothing there. */
Test(recovery_code, digests_are_bound_to_email_and_master_key)
{
    static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{1}, {2}};
    struct keyring *keyring = keyring_create(MASTERS, 2), *retired = keyring_create(MASTERS + 1, 1);
    struct token_digests ana, bob, older;
    struct recovery_code code;
    uint8_t fresh[KEYRING_DIGEST_BYTES];

    cr_assert(recovery_code_parse(TEXT("7K4M-0PXR-9D2E-WQ5T"), &code));
    recovery_code_digests(keyring, TEXT("ana@north.test"), &code, &ana);
    recovery_code_digests(keyring, TEXT("bob@north.test"), &code, &bob);
    recovery_code_digests(retired, TEXT("ana@north.test"), &code, &older);
    recovery_code_digest(keyring, TEXT("ana@north.test"), &code, fresh);
    cr_assert_eq(ana.count, 2);
    cr_assert_arr_eq(ana.of[0], fresh, sizeof fresh);
    cr_assert_arr_neq(ana.of[0], bob.of[0], sizeof fresh);
    cr_assert_arr_eq(ana.of[1], older.of[0], sizeof fresh);
    keyring_destroy(keyring);
    keyring_destroy(retired);
}
