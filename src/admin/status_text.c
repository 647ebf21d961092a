/* Shared by the parts of 'status': reading members of a report, adding a problem, printing a time span. */
#include "status_internal.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MS_PER_S = 1000, S_PER_MIN = 60, S_PER_H = 3600, S_PER_DAY = 86400 };

void status_copy_text(const struct json *report, const char *name, char *ret_text, size_t size)
{
    const struct json *value = json_member(report, name);
    struct buf out;

    buf_init_fixed(&out, ret_text, size - 1);
    if (value && json_type(value) == JSON_STRING)
        buf_append_printable(&out, json_text(value));
    ret_text[out.len] = '\0';
}

int64_t status_copy_integer(const struct json *report, const char *name)
{
    const struct json *value = json_member(report, name);
    int64_t number;

    return value && json_type(value) == JSON_NUMBER && json_integer(value, &number) ? number : 0;
}

bool status_copy_flag(const struct json *report, const char *name)
{
    const struct json *value = json_member(report, name);

    return value && json_type(value) == JSON_BOOL && json_bool(value);
}

void status_add(struct status *status, const char *format, ...)
{
    va_list args;

    if (status->problem_count == STATUS_PROBLEMS_MAX)
        return;
    va_start(args, format);
    vsnprintf(status->problems[status->problem_count++], STATUS_PROBLEM_BYTES, format, args);
    va_end(args);
}

void status_print_span(int64_t ms, char ret_text[STATUS_SPAN_BYTES])
{
    int64_t s = ms > 0 ? ms / MS_PER_S : 0;
    bool is_days = s >= 2 * S_PER_DAY, is_hours = s >= 2 * S_PER_H, is_minutes = s >= 2 * S_PER_MIN;
    int64_t unit_s = is_days ? S_PER_DAY : is_hours ? S_PER_H : is_minutes ? S_PER_MIN : 1;

    snprintf(ret_text, STATUS_SPAN_BYTES, "%" PRId64 " %s", s / unit_s,
             is_days      ? "d"
             : is_hours   ? "h"
             : is_minutes ? "min"
                          : "s");
}
