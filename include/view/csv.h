/* Comma-separated values (RFC 4180). A cell that a spreadsheet would run as a formula gets an apostrophe in front,
 * because names in it may come from strangers. */
#pragma once
#include "base/text.h"

struct csv_writer {
    struct buf *out;
    bool has_cells; /* in the row that is being written */
};

void csv_put(struct csv_writer *w, struct text cell);
/* Not negative. */
void csv_put_integer(struct csv_writer *w, int64_t value);
void csv_end_row(struct csv_writer *w);
