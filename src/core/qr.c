#include "core/qr.h"
#include "base/secure.h"

#include <qrencode.h>

/* ISO/IEC 18004 requires four light modules around the code; on a screen, two are enough for readers. */
enum { QUIET = 2, QR_MODULES_MAX = 177 };

static QRcode *encode(const char *text)
{
    return QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1);
}

/* The text may be a secret. */
static void discard(QRcode *code)
{
    secure_wipe(code->data, (size_t)code->width * (size_t)code->width);
    QRcode_free(code);
}

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
    QRcode *code = encode(text);

    if (!code)
        return false;
    for (int row = -QUIET; row < code->width + QUIET; row += 2) {
        buf_append_str(out, "  \x1b[97;40m");
        for (int column = -QUIET; column < code->width + QUIET; column++)
            buf_append_str(out, half_blocks(is_dark(code, row, column), is_dark(code, row + 1, column)));
        buf_append_str(out, "\x1b[0m\n");
    }
    discard(code);
    return !out->failed;
}

void qr_put_rows(struct json_writer *w, const char *text)
{
    char row[QR_MODULES_MAX];
    QRcode *code = encode(text);

    json_array_begin(w);
    for (int y = 0; code && y < code->width; y++) {
        for (int x = 0; x < code->width; x++)
            row[x] = is_dark(code, y, x) ? '1' : '0';
        JSON_PUT_WORD_ELEMENT(w, ((struct text){row, (size_t)code->width}));
    }
    json_array_end(w);
    if (code)
        discard(code);
    secure_wipe(row, sizeof row);
}
