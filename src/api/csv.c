#include "csv_internal.h"

#include <string.h>

/* Spreadsheets run what begins so as a formula, quoted or not. */
static bool begins_a_formula(struct text cell)
{
    return cell.len > 0 && memchr("=+-@\t\r", cell.ptr[0], 6);
}

static bool needs_quotes(struct text cell)
{
    for (size_t i = 0; i < cell.len; i++)
        if (memchr(",\"\r\n", cell.ptr[i], 4))
            return true;
    return false;
}

void csv_put(struct csv_writer *w, struct text cell)
{
    const bool is_quoted = needs_quotes(cell);

    if (w->has_cells)
        buf_append_char(w->out, ',');
    w->has_cells = true;
    if (is_quoted)
        buf_append_char(w->out, '"');
    if (begins_a_formula(cell))
        buf_append_char(w->out, '\'');
    for (size_t i = 0; i < cell.len; i++) {
        if (cell.ptr[i] == '"')
            buf_append_char(w->out, '"');
        buf_append_char(w->out, cell.ptr[i]);
    }
    if (is_quoted)
        buf_append_char(w->out, '"');
}

void csv_put_integer(struct csv_writer *w, int64_t value)
{
    char storage[24];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    buf_append_u64(&out, (uint64_t)value);
    csv_put(w, buf_text(&out));
}

void csv_end_row(struct csv_writer *w)
{
    buf_append(w->out, "\r\n", 2);
    w->has_cells = false;
}
