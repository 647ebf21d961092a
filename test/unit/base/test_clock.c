#include "base/clock.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(clock, .fini = leak_guard);

static const struct {
    int64_t ms;
    const char *rfc3339, *http_date, *date;
} CASES[] = {
    {0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01"},
    {1, "1970-01-01T00:00:00.001Z", "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01"},
    {-1, "1969-12-31T23:59:59.999Z", "Wed, 31 Dec 1969 23:59:59 GMT", "1969-12-31"},
    {784111777000, "1994-11-06T08:49:37.000Z", "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06"},
    {951782400000, "2000-02-29T00:00:00.000Z", "Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29"},
    {1769860800000, "2026-01-31T12:00:00.000Z", "Sat, 31 Jan 2026 12:00:00 GMT", "2026-01-31"},
    {1798761599999, "2026-12-31T23:59:59.999Z", "Thu, 31 Dec 2026 23:59:59 GMT", "2026-12-31"},
    {253402300799999, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31"},
    {INT64_MAX, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31"},
    {INT64_MIN, "0000-01-01T00:00:00.000Z", "Sat, 01 Jan 0000 00:00:00 GMT", "0000-01-01"},
};

Test(clock, prints)
{
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char rfc3339[CLOCK_RFC3339_BYTES], http_date[CLOCK_HTTP_DATE_BYTES], date[CLOCK_DATE_BYTES];
        clock_print_rfc3339(CASES[i].ms, rfc3339);
        clock_print_http_date(CASES[i].ms, http_date);
        clock_print_date(CASES[i].ms, date);
        cr_expect_str_eq(rfc3339, CASES[i].rfc3339);
        cr_expect_str_eq(http_date, CASES[i].http_date);
        cr_expect_str_eq(date, CASES[i].date);
    }
}

static int64_t noon(void)
{
    return 1769860800000;
}

Test(clock, wall_can_be_replaced_and_restored)
{
    clock_replace_wall_for_test(noon);
    cr_assert_eq(clock_wall_ms(), noon());
    clock_replace_wall_for_test(NULL);
    cr_assert_gt(clock_wall_ms(), noon());
}

Test(clock, boot_never_goes_back)
{
    uint64_t before = clock_boot_ns();
    cr_assert_gt(before, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_boot_ns();
        cr_assert_geq(now, before);
        before = now;
    }
}
