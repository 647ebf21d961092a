#include "http/cookie.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(cookie, .fini = leak_guard);

static const struct find_case {
    struct text header;
    enum cookie_result result;
    struct text value;
} FINDS[] = {
    {TEXT("s=abc"), COOKIE_ONE, TEXT("abc")},
    {TEXT("a=b; s=abc; c=d"), COOKIE_ONE, TEXT("abc")},
    {TEXT("a=b;s=abc"), COOKIE_ONE, TEXT("abc")},
    {TEXT("  s=abc\t ;"), COOKIE_ONE, TEXT("abc")},
    {TEXT("s="), COOKIE_ONE, TEXT("")},
    {TEXT("s=a=b"), COOKIE_ONE, TEXT("a=b")},
    {TEXT("s=\"abc\""), COOKIE_ONE, TEXT("\"abc\"")},
    {TEXT(";; ;s=abc;;"), COOKIE_ONE, TEXT("abc")},
    {TEXT("s; s=abc"), COOKIE_ONE, TEXT("abc")},
    {TEXT(""), COOKIE_ABSENT, TEXT("")},
    {TEXT("s"), COOKIE_ABSENT, TEXT("")},
    {TEXT("S=abc"), COOKIE_ABSENT, TEXT("")},
    {TEXT("sx=abc"), COOKIE_ABSENT, TEXT("")},
    {TEXT("xs=abc"), COOKIE_ABSENT, TEXT("")},
    {TEXT("s =abc"), COOKIE_ABSENT, TEXT("")},
    {TEXT("a=s=abc"), COOKIE_ABSENT, TEXT("")},
    {TEXT("s=abc; s=abc"), COOKIE_SEVERAL, TEXT("")},
    {TEXT("s=abc; a=b; s="), COOKIE_SEVERAL, TEXT("")},
};

Test(cookie, is_found_by_its_exact_name)
{
    for (size_t i = 0; i < sizeof FINDS / sizeof FINDS[0]; i++) {
        struct text value = TEXT("untouched");
        enum cookie_result result = cookie_find(FINDS[i].header, TEXT("s"), &value);

        cr_assert_eq(result, FINDS[i].result, "case %zu", i);
        cr_assert(text_equal(value, result == COOKIE_ONE ? FINDS[i].value : TEXT("untouched")), "case %zu", i);
    }
}

Test(cookie, of_no_header_is_absent)
{
    struct text value;

    cr_assert_eq(cookie_find((struct text){NULL, 0}, TEXT("s"), &value), COOKIE_ABSENT);
}

static void assert_printed(int64_t max_age_s, struct text expected)
{
    struct buf out;

    buf_init(&out, 256);
    cookie_print(TEXT("__Host-session"), TEXT("abc"), max_age_s, &out);
    cr_assert(text_equal(buf_text(&out), expected), "%.*s", TEXT_ARG(buf_text(&out)));
    buf_finish(&out);
}

Test(cookie, is_printed_with_all_its_attributes)
{
    assert_printed(-1, TEXT("__Host-session=abc; Path=/; Secure; HttpOnly; SameSite=Strict"));
    assert_printed(0, TEXT("__Host-session=abc; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0"));
    assert_printed(600, TEXT("__Host-session=abc; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=600"));
}
