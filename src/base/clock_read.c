#include "base/clock.h"
#include "base/quantity.h"

enum {
    MS_PER_S = 1000,
    S_PER_MINUTE = 60,
    S_PER_DAY = 86400,
    FIRST_YEAR = 1970,
    FRACTION_DIGITS = 3, /* the others are cut off */
};

/* What is left to read; an error empties nothing, but is never forgotten. */
struct clock_reader {
    struct text rest;
    bool failed;
};

static bool take_char(struct clock_reader *r, const char *any_of)
{
    if (r->failed || r->rest.len == 0 || !strchr(any_of, r->rest.ptr[0]) || r->rest.ptr[0] == '\0')
        return false;
    r->rest = text_skip(r->rest, 1);
    return true;
}

static void expect_char(struct clock_reader *r, const char *any_of)
{
    if (!take_char(r, any_of))
        r->failed = true;
}

static bool starts_with_digit(const struct clock_reader *r)
{
    return r->rest.len > 0 && text_is_digit(r->rest.ptr[0]);
}

/* Exactly so many digits, whose value is at least min and at most max. */
static int take_number(struct clock_reader *r, int digits, int min, int max)
{
    int value = 0;

    for (int i = 0; i < digits; i++) {
        if (!starts_with_digit(r)) {
            r->failed = true;
            return min;
        }
        value = 10 * value + (r->rest.ptr[0] - '0');
        r->rest = text_skip(r->rest, 1);
    }
    if (value >= min && value <= max)
        return value;
    r->failed = true;
    return min;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return DAYS[month - 1] + (month == 2 && is_leap(year));
}

/* Leap years before this one, since the year 1. */
static int leap_years_before(int year)
{
    return (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
}

/* Days since 1970-01-01. */
static int64_t take_date(struct clock_reader *r)
{
    int year = take_number(r, 4, FIRST_YEAR, 9999);
    expect_char(r, "-");
    int month = take_number(r, 2, 1, 12);
    expect_char(r, "-");
    int day = take_number(r, 2, 1, days_in_month(year, month));
    int64_t days =
        INT64_C(365) * (year - FIRST_YEAR) + leap_years_before(year) - leap_years_before(FIRST_YEAR) + day - 1;

    for (int m = 1; m < month; m++)
        days += days_in_month(year, m);
    return days;
}

static int take_fraction_ms(struct clock_reader *r)
{
    int ms = 0, digits = 0;

    if (!take_char(r, "."))
        return 0;
    if (!starts_with_digit(r))
        r->failed = true;
    for (; starts_with_digit(r); digits++, r->rest = text_skip(r->rest, 1))
        if (digits < FRACTION_DIGITS)
            ms = 10 * ms + (r->rest.ptr[0] - '0');
    for (; digits < FRACTION_DIGITS; digits++)
        ms *= 10;
    return ms;
}

/* Seconds east of UTC. */
static int take_offset(struct clock_reader *r)
{
    if (take_char(r, "Zz"))
        return 0;
    bool is_west = take_char(r, "-");
    if (!is_west)
        expect_char(r, "+");
    int minutes = S_PER_MINUTE * take_number(r, 2, 0, 23);
    expect_char(r, ":");
    minutes += take_number(r, 2, 0, 59);
    return (is_west ? -1 : 1) * minutes * S_PER_MINUTE;
}

static bool end(const struct clock_reader *r)
{
    return !r->failed && r->rest.len == 0;
}

bool clock_read_date(struct text t, int64_t *ret_wall_ms)
{
    struct clock_reader r = {t, false};

    *ret_wall_ms = take_date(&r) * S_PER_DAY * MS_PER_S;
    return end(&r);
}

/* A leap second is read as the second after it. */
bool clock_read_rfc3339(struct text t, int64_t *ret_wall_ms)
{
    struct clock_reader r = {t, false};
    int64_t seconds = take_date(&r) * S_PER_DAY;

    expect_char(&r, "Tt ");
    seconds += S_PER_MINUTE * S_PER_MINUTE * take_number(&r, 2, 0, 23);
    expect_char(&r, ":");
    seconds += S_PER_MINUTE * take_number(&r, 2, 0, 59);
    expect_char(&r, ":");
    seconds += take_number(&r, 2, 0, 60);
    int ms = take_fraction_ms(&r);
    seconds -= take_offset(&r);
    *ret_wall_ms = seconds * MS_PER_S + ms;
    return end(&r);
}

static bool read_ago(struct text t, int64_t now_ms, int64_t *ret_wall_ms)
{
    int64_t ago_ms;

    /* "6m" would be minutes, and whoever writes it here may mean months. */
    if (t.len == 0 || text_is_digit(t.ptr[t.len - 1]) || t.ptr[t.len - 1] == 'm' ||
        !quantity_parse(QUANTITY_TIME, t, &ago_ms) || ago_ms == 0 || ago_ms > now_ms)
        return false;
    *ret_wall_ms = now_ms - ago_ms;
    return true;
}

bool clock_read_when(struct text t, int64_t now_ms, int64_t *ret_wall_ms)
{
    const int64_t ms_per_day = (int64_t)S_PER_DAY * MS_PER_S, today_ms = now_ms - now_ms % ms_per_day;
    int64_t ms;

    if (text_equal(t, TEXT("today")))
        ms = today_ms;
    else if (text_equal(t, TEXT("yesterday")))
        ms = today_ms - ms_per_day;
    else if (!read_ago(t, now_ms, &ms) && !clock_read_date(t, &ms) && !clock_read_rfc3339(t, &ms))
        return false;
    *ret_wall_ms = ms;
    return true;
}
