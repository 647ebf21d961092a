#include "base/clock.h"

#include "base/check.h"

#include <string.h>
#include <time.h>

enum { MS_PER_S = 1000, NS_PER_MS = 1000 * 1000, NS_PER_S = 1000 * 1000 * 1000 };

/* Limits of a four-digit year. */
#define YEAR_0_MS (-INT64_C(62167219200000))
#define YEAR_9999_END_MS INT64_C(253402300799999)

static int64_t (*replaced_wall_ms)(void);

static struct timespec clock_read(clockid_t id)
{
    struct timespec now;
    CHECK(clock_gettime(id, &now) == 0);
    return now;
}

int64_t clock_wall_ms(void)
{
    if (replaced_wall_ms)
        return replaced_wall_ms();
    struct timespec now = clock_read(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

uint64_t clock_boot_ns(void)
{
    struct timespec now = clock_read(CLOCK_BOOTTIME);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int64_t clock_zero_ms(void)
{
    return clock_wall_ms() - (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
}

void clock_replace_wall_for_test(int64_t (*wall_ms)(void))
{
    replaced_wall_ms = wall_ms;
}

/* Broken-down UTC time. Times outside the years 0 to 9999 become the nearest inside. */
static struct tm clock_split(int64_t wall_ms, int *ret_ms)
{
    if (wall_ms < YEAR_0_MS)
        wall_ms = YEAR_0_MS;
    if (wall_ms > YEAR_9999_END_MS)
        wall_ms = YEAR_9999_END_MS;

    int ms = (int)(wall_ms % MS_PER_S);
    if (ms < 0)
        ms += MS_PER_S;
    time_t seconds = (time_t)((wall_ms - ms) / MS_PER_S);
    struct tm parts;
    CHECK(gmtime_r(&seconds, &parts));
    *ret_ms = ms;
    return parts;
}

static char *put_digits(char *at, int value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + width;
}

static char *put_char(char *at, char c)
{
    *at = c;
    return at + 1;
}

static char *put_name(char *at, const char names[], int index)
{
    memcpy(at, names + 3 * index, 3);
    return at + 3;
}

static char *put_date(char *at, const struct tm *parts)
{
    at = put_char(put_digits(at, parts->tm_year + 1900, 4), '-');
    at = put_char(put_digits(at, parts->tm_mon + 1, 2), '-');
    return put_digits(at, parts->tm_mday, 2);
}

static char *put_time(char *at, const struct tm *parts)
{
    at = put_char(put_digits(at, parts->tm_hour, 2), ':');
    at = put_char(put_digits(at, parts->tm_min, 2), ':');
    return put_digits(at, parts->tm_sec, 2);
}

void clock_print_rfc3339(int64_t wall_ms, char ret_text[CLOCK_RFC3339_BYTES])
{
    int ms;
    struct tm parts = clock_split(wall_ms, &ms);
    char *at = put_char(put_date(ret_text, &parts), 'T');
    at = put_char(put_time(at, &parts), '.');
    at = put_char(put_digits(at, ms, 3), 'Z');
    *at = '\0';
}

void clock_print_http_date(int64_t wall_ms, char ret_text[CLOCK_HTTP_DATE_BYTES])
{
    int ms;
    struct tm parts = clock_split(wall_ms, &ms);
    char *at = put_name(ret_text, "SunMonTueWedThuFriSat", parts.tm_wday);
    at = put_char(put_char(at, ','), ' ');
    at = put_char(put_digits(at, parts.tm_mday, 2), ' ');
    at = put_char(put_name(at, "JanFebMarAprMayJunJulAugSepOctNovDec", parts.tm_mon), ' ');
    at = put_char(put_digits(at, parts.tm_year + 1900, 4), ' ');
    at = put_time(at, &parts);
    memcpy(at, " GMT", sizeof " GMT");
}

void clock_print_date(int64_t wall_ms, char ret_text[CLOCK_DATE_BYTES])
{
    int ms;
    struct tm parts = clock_split(wall_ms, &ms);
    *put_date(ret_text, &parts) = '\0';
}
