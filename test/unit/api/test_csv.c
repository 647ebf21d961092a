/* Rows of comma-separated values. */
#include "api/csv_internal.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(csv, .fini = leak_guard);

Test(csv, cells)
{
    static const char *const CASES[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"a b", "a b"},
        {"a,b", "\"a,b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"\"", "\"\"\"\""},
        {"two\nlines", "\"two\nlines\""},
        {"a\rb", "\"a\rb\""},
        {"=1+1", "'=1+1"},
        {"+1", "'+1"},
        {"-1", "'-1"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"\t=1", "\"'\t'=1\""},
        {"\r=1", "\"'\r'=1\""},
        /* Other locales separate by semicolons, or take full-width signs; pasted text is separated by tabs. */
        {"a;b", "\"a;b\""},
        {"a;=1+1", "\"a;'=1+1\""},
        {"a; @SUM(A1);-1", "\"a; '@SUM(A1);'-1\""},
        {"a\t+1", "\"a\t'+1\""},
        {"two\n=1\r\n=2", "\"two\n'=1\r\n'=2\""},
        {" =1", " '=1"},
        {"\xEF\xBC\x9D"
         "1",
         "'\xEF\xBC\x9D"
         "1"},
        {"\xEF\xBC\x8B"
         "1",
         "'\xEF\xBC\x8B"
         "1"},
        {"\xEF\xBC\x8D"
         "1",
         "'\xEF\xBC\x8D"
         "1"},
        {"\xEF\xBC\xA0"
         "a",
         "'\xEF\xBC\xA0"
         "a"},
        {"\xEF\xBC\xA1", "\xEF\xBC\xA1"},
        {"a=1;b=2", "\"a=1;b=2\""},
        {"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
        {"a=1", "a=1"},
        {"'=1", "'=1"},
        {"\xC3\xA9", "\xC3\xA9"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char storage[128];
        struct buf out;
        struct csv_writer w = {.out = &out};

        buf_init_fixed(&out, storage, sizeof storage);
        csv_put(&w, text_of(CASES[i][0]));
        cr_expect(text_equal(buf_text(&out), text_of(CASES[i][1])), "%s: %.*s", CASES[i][0], TEXT_ARG(buf_text(&out)));
    }
}

Test(csv, rows)
{
    char storage[128];
    struct buf out;
    struct csv_writer w = {.out = &out};

    buf_init_fixed(&out, storage, sizeof storage);
    csv_put(&w, TEXT(""));
    csv_put(&w, TEXT("b"));
    csv_put_integer(&w, 12);
    csv_end_row(&w);
    csv_put(&w, TEXT("c"));
    csv_end_row(&w);
    cr_assert(text_equal(buf_text(&out), TEXT(",b,12\r\nc\r\n")), "%.*s", TEXT_ARG(buf_text(&out)));
}
