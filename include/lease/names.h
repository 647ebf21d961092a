/* Names of members and barriers in the lease protocol (src/lease/README.md), in hex. */
#pragma once
#include <stdbool.h>
#include <string.h>

enum {
    MEMBER_NAME_BYTES = 16,
    MEMBER_NAME_CHARS = 2 * MEMBER_NAME_BYTES,
    BARRIER_NAME_CHARS = 16,
};

struct member_name {
    char text[MEMBER_NAME_CHARS + 1]; /* NUL-terminated; "-": none */
};

/* Whether the names with that prefix are those of one partition of several, with a tag in braces. Its channels belong
 * to the slot of its keys (SPUBLISH), so that what is published stays at the primary of the slot and subscriptions end
 * when the slot moves. prelude.lua decides likewise. */
static inline bool prefix_has_tag(const char *prefix)
{
    size_t length = strlen(prefix);

    return length >= 2 && strcmp(prefix + length - 2, "}:") == 0;
}
