#include "admin/qr.h"

#include <qrencode.h>

/* ISO/IEC 18004 requires four light modules around the code; on a screen, two are enough for readers. */
enum { QUIET = 2 };

static bool is_dark(const QRcode *code, int row, int column)
{
    if (row < 0 || column < 0 || row >= code->width || column >= code->width)
        return false;
    return code->data[row * code->width + column] & 1;
}

/* Draws light modules on an explicit black background, so that terminal themes cannot invert the code. */
static const char *half_blocks(bool upper_dark, bool lower_dark)
{
    if (upper_dark)
        return lower_dark ? " " : "\xe2\x96\x84";
    return lower_dark ? "\xe2\x96\x80" : "\xe2\x96\x88";
}

bool qr_print(const char *text, struct buf *out)
{
    QRcode *code = QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1);

    if (!code)
        return false;
    for (int row = -QUIET; row < code->width + QUIET; row += 2) {
        buf_append_str(out, "  \x1b[97;40m");
        for (int column = -QUIET; column < code->width + QUIET; column++)
            buf_append_str(out, half_blocks(is_dark(code, row, column), is_dark(code, row + 1, column)));
        buf_append_str(out, "\x1b[0m\n");
    }
    QRcode_free(code);
    return !out->failed;
}
