/* What surrounds the data of a chunked body: size lines, extensions, trailers. llhttp bounds none of it and takes a
 * bare LF in places (H1, H9), and its versions differ in the extensions and trailers they take. This guard sees each
 * such byte once and refuses what is unsound, so that every version comes to the same verdict. Nothing is kept. */
#pragma once
#include "base/text.h"

struct framing {
    size_t size_digits;     /* of the current size line */
    size_t extension_bytes; /* of all size lines */
    size_t trailer_bytes;
    size_t trailer_name_bytes;
    char trailer_name[sizeof "transfer-encoding"]; /* as much as tells it from the names that are refused */
    bool in_extension;
    bool has_nonzero_digit; /* of the current size line */
    bool in_trailers;
    bool in_trailer_value;
    bool after_cr;
};

/* The next framing bytes, in any pieces. False: refuse the request. Starts zeroed. */
MUST_CHECK bool framing_check(struct framing *f, struct text bytes);
