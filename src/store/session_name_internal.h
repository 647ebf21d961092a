/* Names on the wire of the lease protocol (design 6): sessions and barriers, in hex. */
#pragma once
#include "base/text.h"

enum {
    SESSION_NAME_BYTES = 16,
    SESSION_NAME_CHARS = 2 * SESSION_NAME_BYTES,
    BARRIER_NAME_CHARS = 16,
};

struct session_name {
    char text[SESSION_NAME_CHARS + 1]; /* NUL-terminated; "-" for none */
};
