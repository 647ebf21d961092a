/* Guards the bytes around the data of a chunked body: size lines, extensions, trailers. llhttp bounds none of them and
 * accepts a bare LF in places (H1, H9), and its versions differ in the extensions and trailers they accept. The guard
 * sees each such byte once and refuses what is unsound, so that every version reaches the same verdict. */
#pragma once
#include "base/text.h"

struct framing {
    size_t size_digits;     /* of the current size line */
    size_t extension_bytes; /* of all size lines */
    size_t trailer_bytes;
    size_t trailer_name_bytes;
    char trailer_name[sizeof "transfer-encoding"]; /* enough of it to recognise a refused name */
    bool in_extension;
    bool has_nonzero_digit; /* of the current size line */
    bool in_trailers;
    bool in_trailer_value;
    bool after_cr;
};

/* Checks the next framing bytes, in pieces of any size. False: refuse the request. f starts zeroed. */
MUST_CHECK bool framing_validate(struct framing *f, struct text bytes);
