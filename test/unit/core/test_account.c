#include "core/account.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(account, .fini = leak_guard);

Test(account, gives_an_email_one_spelling)
{
    static const char *const CASES[][2] = {
        {"a@b.test", "a@b.test"},
        {" A.Person+tag@Clinic.TEST\t", "a.person+tag@clinic.test"},
        {"a@b", "a@b"},
        {"\xc3\x89va@b.test", "\xc3\x89va@b.test"}, /* ASCII letters alone are lowered */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char email[EMAIL_MAX_BYTES + 1];
        cr_assert(account_normalise_email(text_of(CASES[i][0]), email), "%s", CASES[i][0]);
        cr_assert_str_eq(email, CASES[i][1]);
    }
}

Test(account, refuses_what_is_no_email)
{
    static const char *const CASES[] = {"",      " ",      "@",          "a@",         "@b",      "ab",
                                        "a@b@c", "a b@c",  "a@b c",      "a\n@b",      "a@b\x7f", "a\t@b",
                                        "a@b\n", "a@\xff", "a@\xc0\xaf", "a@b\xc2\x85"};
    char email[EMAIL_MAX_BYTES + 1] = "untouched";
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(account_normalise_email(text_of(CASES[i]), email), "%s", CASES[i]);
    cr_assert_not(account_normalise_email((struct text){"a@b\0c", 5}, email));
    cr_assert_not(account_normalise_email((struct text){NULL, 0}, email));
    cr_assert_str_eq(email, "untouched");
}

Test(account, limits_an_email_to_254_bytes)
{
    char text[EMAIL_MAX_BYTES + 1], email[EMAIL_MAX_BYTES + 1];
    memset(text, 'a', sizeof text);
    text[1] = '@';
    cr_assert(account_normalise_email((struct text){text, EMAIL_MAX_BYTES}, email));
    cr_assert_eq(strlen(email), EMAIL_MAX_BYTES);
    cr_assert_not(account_normalise_email((struct text){text, EMAIL_MAX_BYTES + 1}, email));
}

Test(account, judges_names)
{
    char text[201];
    memset(text, 'n', sizeof text);
    cr_assert(account_name_valid(TEXT("North Clinic")));
    cr_assert(account_name_valid((struct text){text, 200}));
    cr_assert_not(account_name_valid((struct text){text, 201}));
    cr_assert_not(account_name_valid(TEXT("")));
    cr_assert_not(account_name_valid(TEXT("a\x1b[1m")));
    cr_assert_not(account_name_valid(TEXT("\xfe")));
}

Test(account, judges_passwords)
{
    static const struct {
        const char *password;
        enum password_verdict verdict;
    } CASES[] = {
        {"", PASSWORD_TOO_SHORT},
        {"elevenchars", PASSWORD_TOO_SHORT},
        {"twelve chars", PASSWORD_OK},
        {"gr\xc3\xbc\xc3\x9f mir Ann", PASSWORD_OK}, /* 12 code points */
        {"gr\xc3\xbc\xc3\x9f mir An", PASSWORD_TOO_SHORT},
        {"\xf0\x9f\x94\x91\xf0\x9f\x8c\xb2\xf0\x9f\x90\x8e", PASSWORD_TOO_SHORT},
        {"valid until the \xff", PASSWORD_NOT_TEXT},
        {"password1234", PASSWORD_COMMON},
        {"PassWord1234", PASSWORD_COMMON},
        {"qwertyuiopas", PASSWORD_COMMON},
        {"CorrectHorseBatteryStaple", PASSWORD_COMMON},
        {"password1234 and more", PASSWORD_OK}, /* the whole password is compared, no part of it */
        {"123456789012", PASSWORD_COMMON},
        {"345678901234567890", PASSWORD_COMMON},
        {"210987654321", PASSWORD_COMMON},
        {"abcdefghijkl", PASSWORD_COMMON},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", PASSWORD_COMMON},
        {"zyxwvutsrqpo", PASSWORD_COMMON},
        {"aaaaaaaaaaaaaaaa", PASSWORD_COMMON},
        {"            ", PASSWORD_COMMON},
        {"abababababab", PASSWORD_COMMON},
        {"abcdabcdabcd", PASSWORD_COMMON},
        {"12341234123412", PASSWORD_COMMON},
        {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
         PASSWORD_COMMON},
        {"abcdefghijk!", PASSWORD_OK},
        {"lantern over grey water", PASSWORD_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(account_judge_password(text_of(CASES[i].password)), CASES[i].verdict, "%s", CASES[i].password);
    cr_assert_eq(account_judge_password((struct text){"a nul \0 in the middle", 21}), PASSWORD_NOT_TEXT);
}

Test(account, takes_passwords_of_up_to_256_code_points)
{
    char text[4 * PASSWORD_MAX_CHARS + 4];
    for (size_t i = 0; i < sizeof text; i += 4) {
        memcpy(text + i, "\xf0\x9f\x90\x80", 4);
        text[i + 3] = (char)(0x80 + i / 4 % 61);
    }
    cr_assert_eq(account_judge_password((struct text){text, PASSWORD_MAX_BYTES}), PASSWORD_OK);
    cr_assert_eq(account_judge_password((struct text){text, PASSWORD_MAX_BYTES + 4}), PASSWORD_TOO_LONG);
}

Test(account, explains_each_verdict)
{
    for (int verdict = PASSWORD_OK; verdict <= PASSWORD_NOT_TEXT; verdict++)
        for (int other = PASSWORD_OK; other < verdict; other++)
            cr_assert_str_neq(account_explain_password((enum password_verdict)verdict),
                              account_explain_password((enum password_verdict)other));
}
