#include "view/csv.h"

#include <string.h>

static bool is_one_of(char c, struct text those)
{
    return memchr(those.ptr, c, those.len);
}

/* Spreadsheets run what begins so as a formula, quoted or not. The last four are the first four, full-width. */
static bool begins_a_formula(struct text text)
{
    static const struct text SIGNS[] = {TEXT("="),
                                        TEXT("+"),
                                        TEXT("-"),
                                        TEXT("@"),
                                        TEXT("\xEF\xBC\x9D"),
                                        TEXT("\xEF\xBC\x8B"),
                                        TEXT("\xEF\xBC\x8D"),
                                        TEXT("\xEF\xBC\xA0")};

    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (text_starts_with(text, SIGNS[i]))
            return true;
    return false;
}

static bool needs_quotes(struct text cell)
{
    for (size_t i = 0; i < cell.len; i++)
        if (is_one_of(cell.ptr[i], TEXT(",;\t\"\r\n")))
            return true;
    return false;
}

/* Where cells are separated by semicolons or tabs, because of the locale, quotes within a cell do not count, and what
 * follows such a character begins a cell. */
static void put_content(struct buf *out, struct text cell)
{
    bool may_begin = true;

    if (cell.len > 0 && is_one_of(cell.ptr[0], TEXT("\t\r")))
        buf_append_char(out, '\'');
    for (size_t i = 0; i < cell.len; i++) {
        if (may_begin && begins_a_formula(text_skip(cell, i)))
            buf_append_char(out, '\'');
        if (cell.ptr[i] != ' ')
            may_begin = is_one_of(cell.ptr[i], TEXT(";\t\r\n"));
        if (cell.ptr[i] == '"')
            buf_append_char(out, '"');
        buf_append_char(out, cell.ptr[i]);
    }
}

void csv_put(struct csv_writer *w, struct text cell)
{
    const bool is_quoted = needs_quotes(cell);

    if (w->has_cells)
        buf_append_char(w->out, ',');
    w->has_cells = true;
    if (is_quoted)
        buf_append_char(w->out, '"');
    put_content(w->out, cell);
    if (is_quoted)
        buf_append_char(w->out, '"');
}

void csv_put_integer(struct csv_writer *w, int64_t value)
{
    struct buf out = BUF_FIXED(24);

    buf_append_u64(&out, (uint64_t)value);
    csv_put(w, buf_text(&out));
}

void csv_end_row(struct csv_writer *w)
{
    buf_append(w->out, "\r\n", 2);
    w->has_cells = false;
}
