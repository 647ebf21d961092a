#include "base/quantity.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(quantity, .fini = leak_guard);

Test(quantity, is_read_in_each_unit)
{
    static const struct {
        enum quantity_kind kind;
        const char *text;
        int64_t value;
    } CASES[] = {
        {QUANTITY_TIME, "0", 0},
        {QUANTITY_TIME, "1000", 1000},
        {QUANTITY_TIME, "500ms", 500},
        {QUANTITY_TIME, "1s", 1000},
        {QUANTITY_TIME, "30min", 1800000},
        {QUANTITY_TIME, "30m", 1800000},
        {QUANTITY_TIME, "12h", 43200000},
        {QUANTITY_TIME, "7d", 604800000},
        {QUANTITY_TIME, "0s", 0},
        {QUANTITY_TIME, "9223372036854775807", INT64_MAX},
        {QUANTITY_TIME, "106751991167d", INT64_C(9223372036828800000)},
        {QUANTITY_SIZE, "8000", 8000},
        {QUANTITY_SIZE, "8000B", 8000},
        {QUANTITY_SIZE, "64KiB", 65536},
        {QUANTITY_SIZE, "96MiB", 100663296},
        {QUANTITY_SIZE, "16GiB", INT64_C(17179869184)},
        {QUANTITY_SIZE, "8589934591GiB", INT64_C(9223372035781033984)},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        int64_t value = -1;

        cr_expect(quantity_parse(CASES[i].kind, text_of(CASES[i].text), &value), "%s", CASES[i].text);
        cr_expect_eq(value, CASES[i].value, "%s: %lld", CASES[i].text, (long long)value);
    }
}

Test(quantity, refuses_everything_else)
{
    static const char *const TIMES[] = {"",
                                        "s",
                                        "ms",
                                        "1.5s",
                                        "1,5s",
                                        "-1",
                                        "-1s",
                                        "+1",
                                        "1S",
                                        "1 s",
                                        " 1s",
                                        "1s ",
                                        "1sec",
                                        "1M",
                                        "1MiB",
                                        "01s",
                                        "0x1s",
                                        "1s500ms",
                                        "1e3",
                                        "106751991168d",
                                        "9223372036854775808",
                                        "1min2"};
    static const char *const SIZES[] = {"",      "MiB",  "96Mb", "96MB",  "96M", "96mib", "96 MiB",        "1.5GiB",
                                        "-1KiB", "1TiB", "1s",   "08KiB", "1b",  "1KB",   "8589934592GiB", "1KiB1"};
    int64_t value = 7;

    for (size_t i = 0; i < COUNT(TIMES); i++)
        cr_expect_not(quantity_parse(QUANTITY_TIME, text_of(TIMES[i]), &value), "%s", TIMES[i]);
    for (size_t i = 0; i < COUNT(SIZES); i++)
        cr_expect_not(quantity_parse(QUANTITY_SIZE, text_of(SIZES[i]), &value), "%s", SIZES[i]);
    cr_expect_not(quantity_parse(QUANTITY_SIZE, (struct text){"1\0KiB", 5}, &value));
    cr_expect_eq(value, 7, "a refusal changes nothing");
}

Test(quantity, is_printed_in_the_largest_unit_without_a_fraction)
{
    static const struct {
        enum quantity_kind kind;
        int64_t value;
        const char *text;
    } CASES[] = {
        {QUANTITY_TIME, 0, "0"},
        {QUANTITY_TIME, 999, "999ms"},
        {QUANTITY_TIME, 1000, "1s"},
        {QUANTITY_TIME, 1500, "1500ms"},
        {QUANTITY_TIME, 75000, "75s"},
        {QUANTITY_TIME, 60000, "1min"},
        {QUANTITY_TIME, 43200000, "12h"},
        {QUANTITY_TIME, INT64_C(2592000000), "30d"},
        {QUANTITY_SIZE, 0, "0"},
        {QUANTITY_SIZE, 8000, "8000"},
        {QUANTITY_SIZE, 65536, "64KiB"},
        {QUANTITY_SIZE, 1048577, "1048577"},
        {QUANTITY_SIZE, 67108864, "64MiB"},
        {QUANTITY_SIZE, INT64_MAX, "9223372036854775807"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        char storage[32];
        struct buf out;
        int64_t again = -1;

        buf_init_fixed(&out, storage, sizeof storage);
        quantity_print(CASES[i].kind, CASES[i].value, &out);
        cr_expect(text_equal(buf_text(&out), text_of(CASES[i].text)), "%.*s", TEXT_ARG(buf_text(&out)));
        cr_expect(quantity_parse(CASES[i].kind, buf_text(&out), &again));
        cr_expect_eq(again, CASES[i].value);
    }
}
