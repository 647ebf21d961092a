/* QR codes on a terminal. */
#pragma once
#include "base/text.h"

/* Prints two rows of modules per line as UTF-8 half blocks, dark on light whatever the terminal's colours. False if the
 * text does not fit into a QR code. */
MUST_CHECK bool qr_print(const char *text, struct buf *out);
