#include "doctor_internal.h"

#include <stdlib.h>
#include <unistd.h>

enum { NAME_COLUMNS = 27, TEXT_COLUMN = 6 + NAME_COLUMNS + 2, LINE_COLUMNS = 100 };

#define RESET "\x1b[0m"

static const struct {
    const char *plain, *symbol, *colour;
} STATUSES[] = {
    [DOCTOR_OK] = {"ok", "✓", "\x1b[32m"},
    [DOCTOR_WARN] = {"warn", "!", "\x1b[33m"},
    [DOCTOR_FAIL] = {"fail", "✗", "\x1b[31m"},
};

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
    const char *plural = warnings == 1 ? "" : "s";

    for (size_t i = 0; i < report->count; i++)
        print_check(&report->checks[i], has_colour, out);
    if (failures > 0)
        buf_printf(out, "Not fit: %zu check%s failed, with %zu warning%s.\n", failures, failures == 1 ? "" : "s",
                   warnings, plural);
    else if (warnings > 0)
        buf_printf(out, "Fit, with %zu warning%s.\n", warnings, plural);
    else
        buf_append_str(out, "Fit.\n");
}
