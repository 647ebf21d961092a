/* QR codes (ISO/IEC 18004), for terminals and for pages. */
#pragma once
#include "base/json.h"

/* Prints two rows of modules per line as UTF-8 half blocks, dark on light whatever the terminal's colours. False if the
 * text does not fit into a QR code. */
MUST_CHECK bool qr_print(const char *text, struct buf *out);
/* An array with one string per row, 1 for a dark module and 0 for a light one, without the quiet zone. Empty if the
 * text does not fit. */
void qr_put_rows(struct json_writer *w, const char *text);
