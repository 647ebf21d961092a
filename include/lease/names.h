/* Names of members and barriers in the lease protocol (src/lease/README.md), in hex. */
#pragma once

enum {
    MEMBER_NAME_BYTES = 16,
    MEMBER_NAME_CHARS = 2 * MEMBER_NAME_BYTES,
    BARRIER_NAME_CHARS = 16,
};

struct member_name {
    char text[MEMBER_NAME_CHARS + 1]; /* NUL-terminated; "-": none */
};
