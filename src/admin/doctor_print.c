#include "doctor_internal.h"

#include "admin_internal.h"
#include "base/check.h"
#include "view/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REPORT_MAX_BYTES = 64 * 1024 };
enum { NAME_COLUMNS = 27, TEXT_COLUMN = 6 + NAME_COLUMNS + 2, LINE_COLUMNS = 100 };

#define RESET "\x1b[0m"

static const struct {
    const char *name, *plain, *symbol, *colour;
} STATUSES[] = {
    [DOCTOR_OK] = {"ok", "ok", "✓", "\x1b[32m"},
    [DOCTOR_WARN] = {"warn", "warn", "!", "\x1b[33m"},
    [DOCTOR_UNPROVEN] = {"unproven", "?", "?", "\x1b[33m"},
    [DOCTOR_FAIL] = {"fail", "fail", "✗", "\x1b[31m"},
};

void doctor_add(struct doctor_report *report, const char *name, enum doctor_status status, const char *remedy,
                const char *format, ...)
{
    CHECK(report->count < DOCTOR_CHECKS_MAX);
    struct doctor_check *check = &report->checks[report->count++];
    va_list args;

    check->name = name;
    check->status = status;
    check->remedy = status == DOCTOR_OK ? NULL : remedy;
    va_start(args, format);
    vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
}

bool doctor_wants_colour(void)
{
    const char *no_color = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static void start_line(struct buf *out)
{
    buf_append_char(out, '\n');
    for (unsigned i = 0; i < TEXT_COLUMN; i++)
        buf_append_char(out, ' ');
}

/* In lines that begin at TEXT_COLUMN; the first one is already there. */
static void print_wrapped(struct text text, struct buf *out)
{
    struct text word;
    size_t used = TEXT_COLUMN, width;

    while (text_next(&text, ' ', &word)) {
        if (!text_count_utf8(word, &width))
            width = word.len;
        if (used > TEXT_COLUMN && used + 1 + width > LINE_COLUMNS) {
            start_line(out);
            used = TEXT_COLUMN;
        }
        if (used > TEXT_COLUMN) {
            buf_append_char(out, ' ');
            used++;
        }
        buf_append_printable(out, word);
        used += width;
    }
}

static void print_check(const struct doctor_check *check, bool has_colour, struct buf *out)
{
    if (has_colour)
        buf_printf(out, "%s%s%s     ", STATUSES[check->status].colour, STATUSES[check->status].symbol, RESET);
    else
        buf_printf(out, "%-4s  ", STATUSES[check->status].plain);
    buf_printf(out, "%-*s  ", NAME_COLUMNS, check->name);
    print_wrapped(text_of(check->detail), out);
    if (check->remedy) {
        start_line(out);
        print_wrapped(text_of(check->remedy), out);
    }
    buf_append_char(out, '\n');
}

static size_t count(const struct doctor_report *report, enum doctor_status status)
{
    size_t found = 0;

    for (size_t i = 0; i < report->count; i++)
        found += report->checks[i].status == status;
    return found;
}

void doctor_print(const struct doctor_report *report, bool has_colour, struct buf *out)
{
    size_t warnings = count(report, DOCTOR_WARN), failures = count(report, DOCTOR_FAIL);
    size_t unproven = count(report, DOCTOR_UNPROVEN);
    const char *plural = warnings == 1 ? "" : "s";

    for (size_t i = 0; i < report->count; i++)
        print_check(&report->checks[i], has_colour, out);
    if (failures > 0)
        buf_printf(out, "Not fit: %zu check%s failed, with %zu warning%s.\n", failures, failures == 1 ? "" : "s",
                   warnings, plural);
    else if (unproven > 0)
        buf_printf(out, "Not proven to be fit: %zu check%s could not tell, with %zu warning%s.\n", unproven,
                   unproven == 1 ? "" : "s", warnings, plural);
    else if (warnings > 0)
        buf_printf(out, "Fit, with %zu warning%s.\n", warnings, plural);
    else
        buf_append_str(out, "Fit.\n");
}

static void print_json(const struct doctor_report *report, struct buf *out)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_put_flag(&w, "fit", doctor_is_fit(report));
    json_key_array(&w, "checks");
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_check *check = &report->checks[i];
        json_object_begin(&w);
        json_put_member(&w, "name", text_of(check->name));
        json_put_member(&w, "status", text_of(STATUSES[check->status].name));
        json_put_member(&w, "detail", text_of(check->detail));
        view_put_text_or_null(&w, "remedy", text_of(check->remedy ? check->remedy : ""));
        json_object_end(&w);
    }
    json_array_end(&w);
    json_line_end(&w);
}

int doctor_tell(const struct command_line *line, const struct doctor_report *report)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(REPORT_MAX_BYTES);
    int code;

    if (line->json)
        print_json(report, &out);
    else
        doctor_print(report, doctor_wants_colour(), &out);
    code = command_print(buf_text(&out));
    return code == EXIT_DONE && !doctor_is_fit(report) ? EXIT_UNFIT : code;
}

bool doctor_is_fit(const struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->checks[i].status >= DOCTOR_UNPROVEN)
            return false;
    return true;
}
