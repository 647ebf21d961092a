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

Test(clock, reads_what_it_prints)
{
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int64_t ms;

        if (CASES[i].ms < 0 || CASES[i].ms == INT64_MAX)
            continue;
        cr_expect(clock_read_rfc3339(text_of(CASES[i].rfc3339), &ms), "%s", CASES[i].rfc3339);
        cr_expect_eq(ms, CASES[i].ms, "%s", CASES[i].rfc3339);
        cr_expect(clock_read_date(text_of(CASES[i].date), &ms), "%s", CASES[i].date);
        cr_expect_eq(ms, CASES[i].ms / 86400000 * 86400000, "%s", CASES[i].date);
    }
}

/* Every day of four centuries, through leap years and the years that are none. */
Test(clock, reads_every_date)
{
    for (int64_t day = 0; day < 146097; day++) {
        char date[CLOCK_DATE_BYTES];
        int64_t ms;

        clock_print_date(day * 86400000, date);
        cr_assert(clock_read_date(text_of(date), &ms), "%s", date);
        cr_assert_eq(ms, day * 86400000, "%s", date);
    }
}

Test(clock, reads_offsets_and_fractions)
{
    static const struct {
        const char *text;
        int64_t ms;
    } GOOD[] = {
        {"2026-01-31T12:00:00Z", 1769860800000},         {"2026-01-31t12:00:00z", 1769860800000},
        {"2026-01-31 12:00:00Z", 1769860800000},         {"2026-01-31T12:00:00.5Z", 1769860800500},
        {"2026-01-31T12:00:00.0019Z", 1769860800001},    {"2026-01-31T12:00:00.123456789Z", 1769860800123},
        {"2026-01-31T13:30:00+01:30", 1769860800000},    {"2026-01-31T07:00:00-05:00", 1769860800000},
        {"2026-02-01T00:00:00.25+12:00", 1769860800250}, {"2016-12-31T23:59:60Z", 1483228800000},
    };

    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        int64_t ms;

        cr_expect(clock_read_rfc3339(text_of(GOOD[i].text), &ms), "%s", GOOD[i].text);
        cr_expect_eq(ms, GOOD[i].ms, "%s: %lld", GOOD[i].text, (long long)ms);
    }
}

Test(clock, refuses_what_is_no_time)
{
    static const char *const TIMES[] = {
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:61Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+1:00",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+01:60",
        "2026-01-31T12:00:00 01:00",
        "2026-01-31T12:00:00Zx",
        " 2026-01-31T12:00:00Z",
        "2026-1-31T12:00:00Z",
        "1969-12-31T12:00:00Z",
        "+026-01-31T12:00:00Z",
        "20260131T120000Z",
    };
    static const char *const DATES[] = {"",           "2026-00-01",  "2026-13-01", "2026-01-00",
                                        "2026-01-32", "2026-04-31",  "2026-02-29", "2100-02-29",
                                        "2026-1-01",  "2026-01-01Z", "0000-01-01", "10000-01-01"};
    int64_t ms;

    for (size_t i = 0; i < sizeof TIMES / sizeof TIMES[0]; i++)
        cr_expect_not(clock_read_rfc3339(text_of(TIMES[i]), &ms), "%s", TIMES[i]);
    cr_expect_not(clock_read_rfc3339((struct text){"2026-01-31\0"
                                                   "12:00:00Z",
                                                   20},
                                     &ms));
    for (size_t i = 0; i < sizeof DATES / sizeof DATES[0]; i++)
        cr_expect_not(clock_read_date(text_of(DATES[i]), &ms), "%s", DATES[i]);
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

Test(clock, reads_when_as_people_write_it)
{
    static const struct {
        const char *text;
        int64_t ms; /* now is 1769860800000; -1: it is refused */
    } WHENS[] = {
        {"90d", 1762084800000},
        {"24h", 1769774400000},
        {"30min", 1769859000000},
        {"1500ms", 1769860798500},
        {"today", 1769817600000},
        {"yesterday", 1769731200000},
        {"2026-01-30", 1769731200000},
        {"2026-01-31T12:00:00Z", 1769860800000},
        {"2026-01-31T13:00:00+01:00", 1769860800000},
        {"2999-01-01", 32472144000000},
        {"0s", -1},
        {"6m", -1},
        {"6min", 1769860800000 - 360000},
        {"90", -1},
        {"", -1},
        {"-1d", -1},
        {"1.5h", -1},
        {"90D", -1},
        {"90 d", -1},
        {"d", -1},
        {"tomorrow", -1},
        {"Yesterday", -1},
        {"2026-02-30", -1},
        {"30000d", -1},
        {"99999999999999999999d", -1},
    };

    for (size_t i = 0; i < sizeof WHENS / sizeof *WHENS; i++) {
        int64_t ms = -1;

        cr_expect_eq(clock_read_when(text_of(WHENS[i].text), 1769860800000, &ms), WHENS[i].ms >= 0, "%s",
                     WHENS[i].text);
        cr_expect_eq(ms, WHENS[i].ms, "%s: %lld", WHENS[i].text, (long long)ms);
    }
}
