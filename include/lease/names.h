/* Names of members and barriers in the lease protocol (src/lease/README.md), in hex. */
#pragma once
#include "base/log.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBER_NAME_CHARS = 32,
    BARRIER_NAME_CHARS = 16,
};

struct member_name {
    char text[MEMBER_NAME_CHARS + 1]; /* NUL-terminated; "-": none */
};

/* Whose acknowledgement is due to whom. */
struct due_acknowledgement {
    struct member_name member, revoker; /* this node's membership that heard of the barrier */
    char barrier[BARRIER_NAME_CHARS + 1];
};

/* Whether the names with that prefix are those of one partition of several, with its number in braces. Its channels
 * belong to the slot of its keys (SPUBLISH), so that what is published stays at the primary of the slot and
 * subscriptions end when the slot moves. prelude.lua decides likewise. Other braces are the operator's: nodes of
 * earlier versions use plain channels there, and would not be heard on others. */
static inline bool prefix_has_tag(const char *prefix)
{
    const char *tag = strrchr(prefix, '{');
    size_t digits = tag ? strspn(tag + 1, "0123456789") : 0;

    return digits > 0 && strcmp(tag + 1 + digits, "}:") == 0;
}

/* For log lines: which partition of several the names with that prefix are of; absent if they are of a store of one. */
static inline struct log_field log_partition(const char *prefix)
{
    bool has_tag = prefix_has_tag(prefix);
    struct log_field field = log_int("partition", has_tag ? strtol(strrchr(prefix, '{') + 1, NULL, 10) : 0);

    field.is_absent = !has_tag;
    return field;
}
