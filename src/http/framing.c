#include "framing_internal.h"

#include <ctype.h>

enum { SIZE_MAX_DIGITS = 16, EXTENSIONS_MAX_BYTES = 128, TRAILERS_MAX_BYTES = 1024 };

/* A size line without digits is the CRLF after a chunk's data. */
static void line_ended(struct framing *f)
{
    if (f->size_digits > 0 && !f->has_nonzero_digit)
        f->in_trailers = true;
    f->size_digits = 0;
    f->in_extension = false;
    f->has_nonzero_digit = false;
    f->in_trailer_value = false;
    f->trailer_name_bytes = 0;
}

/* Only the head may say how the body ends (H7, H8). */
static bool trailer_may_have_name(struct text name)
{
    return name.len > 0 && !text_equal_nocase(name, TEXT("content-length")) &&
           !text_equal_nocase(name, TEXT("transfer-encoding"));
}

static bool trailer_is_sound(struct framing *f, char c)
{
    if (++f->trailer_bytes > TRAILERS_MAX_BYTES)
        return false;
    if (f->in_trailer_value)
        return true;
    if (c == ':') {
        f->in_trailer_value = true;
        return trailer_may_have_name((struct text){f->trailer_name, f->trailer_name_bytes});
    }
    if (f->trailer_name_bytes < sizeof f->trailer_name)
        f->trailer_name[f->trailer_name_bytes++] = c;
    return c != ' '; /* neither a folded line (H2) nor a blank before the colon (H5) */
}

/* One per chunk, without escapes: some versions of llhttp accept no more than that. */
static bool extension_is_sound(struct framing *f, char c)
{
    if (f->in_extension && (c == ';' || c == '\\'))
        return false;
    f->in_extension = true;
    return f->size_digits > 0 && ++f->extension_bytes <= EXTENSIONS_MAX_BYTES;
}

static bool printable_is_sound(struct framing *f, char c)
{
    if (f->in_trailers)
        return trailer_is_sound(f, c);
    if (f->in_extension || c == ';')
        return extension_is_sound(f, c);
    f->has_nonzero_digit |= c != '0';
    return isxdigit((unsigned char)c) && ++f->size_digits <= SIZE_MAX_DIGITS;
}

/* Printable ASCII; a tab only within a trailer's value. */
static bool is_printable(const struct framing *f, char c)
{
    return (c >= ' ' && c <= '~') || (c == '\t' && f->in_trailer_value);
}

bool framing_validate(struct framing *f, struct text bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];

        if (f->after_cr != (c == '\n'))
            return false;
        f->after_cr = c == '\r';
        if (c == '\n')
            line_ended(f);
        else if (c != '\r' && (!is_printable(f, c) || !printable_is_sound(f, c)))
            return false;
    }
    return true;
}
