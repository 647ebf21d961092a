/* Options that are times. */
#include "admin_internal.h"

#include "base/clock.h"

#include <stdio.h>

enum { MS_PER_DAY = 86400000, SECONDS_CHARS = 19, DATE_CHARS = 10 };

static int refuse(const char *option, const char *value, const char *form)
{
    return command_fail(EXIT_USAGE, "%s '%s' is not a %s", option, value, form);
}

int time_option_read(const char *option, const char *value, int64_t *ret_ms)
{
    char became[CLOCK_RFC3339_BYTES];
    int64_t ms;

    if (!value)
        return EXIT_DONE;
    if (!clock_read_when(text_of(value), clock_wall_ms(), ret_ms))
        return refuse(option, value, "time like 90d, 24h, yesterday, 2026-01-31 or 2026-01-31T12:00:00Z");
    if (clock_read_rfc3339(text_of(value), &ms))
        return EXIT_DONE;
    clock_print_rfc3339(*ret_ms, became);
    fprintf(stderr, "%s %.*sZ (%s)\n", option + strlen("--"), SECONDS_CHARS, became, value);
    return EXIT_DONE;
}

int day_option_read(const char *option, const char *value, int64_t *ret_ms)
{
    char became[CLOCK_DATE_BYTES];

    if (!clock_read_when(text_of(value), clock_wall_ms(), ret_ms))
        return refuse(option, value, "day such as 2026-01-31, yesterday or 30d");
    *ret_ms -= *ret_ms % MS_PER_DAY;
    clock_print_date(*ret_ms, became);
    if (strcmp(value, became) != 0)
        fprintf(stderr, "%s %s (%s)\n", option + strlen("--"), became, value);
    return EXIT_DONE;
}
