#include "framing_internal.h"

#include <ctype.h>

enum { SIZE_MAX_DIGITS = 16, EXTENSIONS_MAX_BYTES = 128, TRAILERS_MAX_BYTES = 1024 };

/* A size line without digits is the CRLF behind a chunk's data. */
static void line_ended(struct framing *f)
{
    if (f->size_digits > 0 && !f->has_nonzero_digit)
        f->in_trailers = true;
    f->size_digits = 0;
    f->in_extension = false;
    f->has_nonzero_digit = false;
}

static bool printable_is_sound(struct framing *f, char c)
{
    if (f->in_trailers)
        return ++f->trailer_bytes <= TRAILERS_MAX_BYTES;
    if (f->in_extension || c == ';') {
        f->in_extension = true;
        return f->size_digits > 0 && ++f->extension_bytes <= EXTENSIONS_MAX_BYTES;
    }
    f->has_nonzero_digit |= c != '0';
    return isxdigit((unsigned char)c) && ++f->size_digits <= SIZE_MAX_DIGITS;
}

bool framing_check(struct framing *f, struct text bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];

        if (f->after_cr != (c == '\n'))
            return false;
        f->after_cr = c == '\r';
        if (c == '\n')
            line_ended(f);
        else if (c != '\r' && ((c < ' ' && c != '\t') || c == 0x7f || !printable_is_sound(f, c)))
            return false;
    }
    return true;
}
