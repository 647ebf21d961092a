#include "core/account.h"
#include "core/label.h"

#include "leak_guard.h"

#include "core/common_passwords_internal.h"
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>

#include <string.h>

TestSuite(account, .fini = leak_guard);

Test(account, gives_an_email_one_spelling)
{
    static const char *const CASES[][2] = {
        {"a@b.test", "a@b.test"},
        {" A.Person+tag@Clinic.TEST\t", "a.person+tag@clinic.test"},
        {"a@b", "a@b"},
        {"\xc3\x89va@b.test", "\xc3\x89va@b.test"}, /* only ASCII letters become lower case */
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
    cr_assert(label_valid(TEXT("North Clinic")));
    cr_assert(label_valid((struct text){text, 200}));
    cr_assert_not(label_valid((struct text){text, 201}));
    cr_assert_not(label_valid(TEXT("")));
    cr_assert_not(label_valid(TEXT("a\x1b[1m")));
    cr_assert_not(label_valid(TEXT("\xfe")));
}

Test(account, roles_are_ordered_and_have_names)
{
    static const char *const NAMES[] = {"auditor", "responder", "developer", "owner"};
    static const char *const NONE[] = {"", "Owner", "owner ", "own", "admin"};
    enum role role = ROLE_AUDITOR;
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        cr_expect(text_equal(role_text((enum role)i), text_of(NAMES[i])), "%s", NAMES[i]);
        cr_expect(role_parse(text_of(NAMES[i]), &role) && role == (enum role)i, "%s", NAMES[i]);
    }
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        cr_expect(!role_parse(text_of(NONE[i]), &role) && role == ROLE_OWNER, "'%s'", NONE[i]);
}

/* By name, so that another order of scopes is noticed. */
Test(account, each_role_is_worth_its_scopes)
{
    static const struct {
        enum role role;
        const char *more; /* than the role before */
    } ROLES[] = {
        {ROLE_AUDITOR, "audit:read usage:read"},
        {ROLE_RESPONDER, "keys:manage"},
        {ROLE_DEVELOPER, "exchanges:read exchanges:write patients:read patients:write webhooks:manage documents:write "
                         "sandbox:manage"},
        {ROLE_OWNER, "team:manage org:manage"},
    };
    scope_set expected = SCOPE_NONE;

    for (size_t i = 0; i < ROLE_COUNT; i++) {
        struct text more = text_of(ROLES[i].more), name;

        while (text_next(&more, ' ', &name))
            expected |= scope_parse(name);
        cr_expect_eq(role_scopes(ROLES[i].role), expected, "%zu", i);
    }
    cr_expect_eq(expected, SCOPE_ALL);
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
        {"password1234 and more", PASSWORD_OK}, /* the whole password is compared, not parts of it */
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
        {"abcdefghijk!", PASSWORD_COMMON},
        {"lantern over grey water", PASSWORD_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(account_check_password(text_of(CASES[i].password), NULL), CASES[i].verdict, "%s",
                     CASES[i].password);
    cr_assert_eq(account_check_password((struct text){"a nul \0 in the middle", 21}, NULL), PASSWORD_NOT_TEXT);
}

/* Leaks name these as often as those that are listed; the rules and the estimate find them. */
static const struct text FOUND_BY_RULE =
    TEXT("0987654321qwe,111222333444,123321123321,123456123456,1234567890abc,1234567890qwerty,123456789abc,"
         "123456789qwe,12345qwertyui,147258369123,147258369147,159357159357,1q2w3e4r5t6y,1q2w3e4r5t6y7u,"
         "1q2w3e4r5t6y7u8i,1qaz2wsx3edc,1qaz2wsx3edc4rfv,1qazxsw23edc,741852963741,789456123789,987654321012,"
         "a123456789012,a1b2c3d4e5f6,aa123456789a,abc123456789,abc123abc123,abcd12345678,abcdef123456,abcdefgh1234,"
         "abcdefghijk1,admin1234567,admin12345678,admin123456789,administrator,administrator1,adminpassword,"
         "asdfghjkl123,asdfghjkl1234,asdfghjkl;'\\,asdfghjklzxcvbnm,autumn2025!!,baseball1234,basketball12,"
         "batman123456,changeme123!,changeme1234,changeme12345,changemechangeme,chelsea12345,clinic123456,company12345,"
         "computer1234,default12345,defaultpassword,doctor123456,dragon123456,football1234,googlegoogle,healthcare123,"
         "hospital1234,iloveyou1234,iloveyou12345,iloveyou123456,iloveyou2025,iloveyoubaby,iloveyouiloveyou,"
         "iloveyousomuch,internet1234,jennifer1234,letmein12345,letmein123456,letmeinletmein,liverpool123,master123456,"
         "michael12345,monkey123456,mynameis1234,mypassword123,mypassword1234,newpassword1,newpassword123,p@ssw0rd123!,"
         "p@ssw0rd1234,p@ssword1234,passw0rd123!,passw0rd1234,password!123,password123!,password1234,password1234!,"
         "password12345,password123456,password12345678,password2023,password2024,password2025,password2026,"
         "passwordpassword,princess1234,princess12345,qazwsxedc123,qazwsxedcrfv,qwerty123456,qwerty1234567,"
         "qwerty12345678,qwerty123qwerty,qwertyasdfgh,qwertyqwerty,qwertyuiop12,qwertyuiop123,qwertyuiop1234,"
         "qwertyuiop[],qwertyuiopas,qwertyuiopasdf,qwertyuiopasdfghjkl,qwertyuiopasdfghjklzxcvbnm,secretpassword,"
         "spiderman123,spring2025!!,starwars1234,strongpassword,summer202300,summer2024!!,summer2025!!,sunshine1234,"
         "sunshine12345,superman1234,superpassword,temporary123,temppassword,temppassword1,test12345678,test123456789,"
         "testpassword,testpassword1,trustno1trustno1,welcome1234!,welcome12345,welcome123456,welcomewelcome,"
         "whatever1234,winter2024!!,winter2025!!,zaq12wsxcde3,zxcvbnm12345,zxcvbnm123456,zxcvbnmasdfghjkl");

/* Refuses it, in lower case and in capitals. */
static void expect_common(struct text password)
{
    char upper[64];

    cr_assert_lt(password.len, sizeof upper);
    cr_expect_eq(account_check_password(password, NULL), PASSWORD_COMMON, "%.*s", (int)password.len, password.ptr);
    for (size_t i = 0; i < password.len; i++)
        upper[i] = (char)toupper(password.ptr[i]);
    cr_expect_eq(account_check_password((struct text){upper, password.len}, NULL), PASSWORD_COMMON, "%.*s",
                 (int)password.len, upper);
}

/* ASVS 6.2.4. */
Test(account, refuses_every_listed_password)
{
    struct text rest = COMMON_PASSWORDS, password;
    size_t count = 0;

    for (; text_next(&rest, ',', &password); count++)
        expect_common(password);
    for (rest = FOUND_BY_RULE; text_next(&rest, ',', &password); count++)
        expect_common(password);
    cr_expect_gt(count, 400, "%zu", count);
}

/* A comma that is missing at the end of a line would join two entries, and neither would be found. */
Test(account, lists_are_whole)
{
    struct text rest = COMMON_PASSWORDS, entry;
    size_t passwords = 0, words = 0;

    for (; text_next(&rest, ',', &entry); passwords++)
        cr_expect_geq(entry.len, PASSWORD_MIN_CHARS, "%.*s", (int)entry.len, entry.ptr);
    for (rest = COMMON_WORDS; text_next(&rest, ',', &entry); words++) {
        cr_expect_geq(entry.len, 2);
        for (size_t i = 0; i < entry.len; i++)
            cr_expect(islower(entry.ptr[i]), "%.*s", (int)entry.len, entry.ptr);
    }
    cr_expect_eq(passwords, 301, "%zu", passwords);
    cr_expect_eq(words, 756, "%zu", words);
}

Test(account, takes_passwords_of_up_to_256_code_points)
{
    char text[4 * PASSWORD_MAX_CHARS + 4];
    for (size_t i = 0; i < sizeof text; i += 4) {
        memcpy(text + i, "\xf0\x9f\x90\x80", 4);
        text[i + 3] = (char)(0x80 + i / 4 % 61);
    }
    cr_assert_eq(account_check_password((struct text){text, PASSWORD_MAX_BYTES}, NULL), PASSWORD_OK);
    cr_assert_eq(account_check_password((struct text){text, PASSWORD_MAX_BYTES + 4}, NULL), PASSWORD_TOO_LONG);
}

Test(account, explains_each_verdict)
{
    for (int verdict = PASSWORD_OK; verdict <= PASSWORD_NOT_TEXT; verdict++)
        for (int other = PASSWORD_OK; other < verdict; other++)
            cr_assert_str_neq(account_explain_password((enum password_verdict)verdict),
                              account_explain_password((enum password_verdict)other));
}

/* Passwords that were accepted before these rules, and similar ones. */
Test(account, refuses_what_is_guessed_first)
{
    static const struct password_context CONTEXT = {TEXT("ada.smith@northclinic.test"), TEXT("St. Brigid's Praxis")};
    static const struct {
        const char *password;
        enum password_verdict alone, in_context;
    } CASES[] = {
        {"Summer2026!!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"chatelaine123", PASSWORD_COMMON, PASSWORD_COMMON},
        {"Chatelaine2026!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"Northclinic1!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"N0rthcl1n1c!!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"ada.smith@northclinic.test", PASSWORD_OK, PASSWORD_COMMON},
        {"Ada.Smith2026", PASSWORD_OK, PASSWORD_COMMON},
        {"BrigidsPraxis!", PASSWORD_OK, PASSWORD_COMMON},
        {"St. Brigid's Praxis", PASSWORD_OK, PASSWORD_COMMON},
        {"P@$$w0rd12345", PASSWORD_COMMON, PASSWORD_COMMON},
        {"!!Wintertime2025", PASSWORD_OK, PASSWORD_OK}, /* 'time' is not in the list of words */
        {"2026HappyBirthday", PASSWORD_COMMON, PASSWORD_COMMON},
        {"iloveyousomuch1", PASSWORD_COMMON, PASSWORD_COMMON},
        {"Michael1985!!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"1qaz2wsx3edc!", PASSWORD_COMMON, PASSWORD_COMMON},
        {"qwertzuiop2026", PASSWORD_COMMON, PASSWORD_COMMON},
        {"poiuytrewq98765", PASSWORD_COMMON, PASSWORD_COMMON},
        {"xqzvbnxqzvbn", PASSWORD_COMMON, PASSWORD_COMMON},
        {"DragonDragon99", PASSWORD_COMMON, PASSWORD_COMMON},
        {"amber falcons drift at 42", PASSWORD_OK, PASSWORD_OK},
        {"correct-Horse-battery-9", PASSWORD_OK, PASSWORD_OK},
        {"k7#Qv2!mZp9x", PASSWORD_OK, PASSWORD_OK},
        {"j2Kx0pQmV9ab", PASSWORD_OK, PASSWORD_OK},
        {"zypern kutter lampe", PASSWORD_OK, PASSWORD_OK},
        {"ich mag 7 Birnen", PASSWORD_OK, PASSWORD_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        cr_expect_eq(account_check_password(text_of(CASES[i].password), NULL), CASES[i].alone, "%s", CASES[i].password);
        cr_expect_eq(account_check_password(text_of(CASES[i].password), &CONTEXT), CASES[i].in_context, "%s",
                     CASES[i].password);
    }
}

/* Instead of a list of 3,000 passwords: each word that is long enough, with what people append to words. */
Test(account, refuses_far_more_than_three_thousand_common_passwords)
{
    static const char *const TAILS[] = {"1234",  "12345!", "2024",  "2025!",  "2026!!", "123456", "!!!!", "1999",
                                        "@2026", "111111", "4321!", "qwerty", "000",    "_2023",  "1!"};
    struct text words = COMMON_WORDS, word;
    unsigned tried = 0;

    while (text_next(&words, ',', &word))
        for (size_t tail = 0; tail < 2 * (sizeof TAILS / sizeof TAILS[0]); tail++) {
            char password[64];
            snprintf(password, sizeof password, "%.*s%s", (int)word.len, word.ptr, TAILS[tail / 2]);
            if (tail % 2)
                password[0] = (char)(password[0] - 'a' + 'A');
            if (strlen(password) < PASSWORD_MIN_CHARS)
                continue;
            cr_expect_eq(account_check_password(text_of(password), NULL), PASSWORD_COMMON, "%s", password);
            tried++;
        }
    cr_expect_gt(tried, 3000, "%u", tried);
}

Test(account, prepares_passwords_in_one_form)
{
    static const struct {
        const char *typed, *prepared;
    } CASES[] = {
        {"plain text", "plain text"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"gru\xcc\x88\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},            /* u and a diaeresis: one letter */
        {"\xe2\x84\xab", "\xc3\x85"},                             /* the Angstrom sign */
        {"\xed\x95\x9c", "\xed\x95\x9c"},                         /* a Hangul syllable */
        {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"}, /* the same, from its parts */
        {"a\xc2\xa0"
         "b\xe3\x80\x80"
         "c",
         "a b c"},                                  /* no-break and ideographic space */
        {"\xef\xac\x81 A a", "\xef\xac\x81 A a"},   /* neither compatibility forms nor case change */
        {"q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87"}, /* marks in canonical order */
        {"\xff", "\xff"},
        {"", ""},
    };
    char storage[PASSWORD_FORM_MAX_BYTES], again[PASSWORD_FORM_MAX_BYTES];
    struct buf prepared, twice;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        buf_init_fixed(&prepared, storage, sizeof storage);
        buf_init_fixed(&twice, again, sizeof again);
        account_prepare_password(text_of(CASES[i].typed), &prepared);
        cr_expect(text_equal(buf_text(&prepared), text_of(CASES[i].prepared)), "case %zu", i);
        account_prepare_password(buf_text(&prepared), &twice);
        cr_expect(text_equal(buf_text(&twice), buf_text(&prepared)), "case %zu", i);
    }
}

/* The longest password that grows most still fits. */
Test(account, prepares_the_longest_password)
{
    char typed[PASSWORD_MAX_BYTES], storage[PASSWORD_FORM_MAX_BYTES];
    struct buf prepared;
    for (size_t i = 0; i < sizeof typed; i += 4)
        memcpy(typed + i, "\xf0\x9d\x85\xa0", 4); /* U+1D160 becomes three characters of this size */
    buf_init_fixed(&prepared, storage, sizeof storage);
    account_prepare_password((struct text){typed, sizeof typed}, &prepared);
    cr_expect_not(prepared.failed);
    cr_expect_eq(prepared.len, PASSWORD_FORM_MAX_BYTES);
}
