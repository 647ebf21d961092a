/* QR codes on a terminal. */
#pragma once
#include "base/text.h"

/* Two rows of modules per line, in UTF-8 half blocks, dark on light whatever the terminal's colours. False when the
 * text does not fit into a QR code. */
MUST_CHECK bool qr_print(const char *text, struct buf *out);
