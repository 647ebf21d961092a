/* Replies of Redis as values, valid until the callback that gets them returns. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

enum reply_type { REPLY_NIL, REPLY_STRING, REPLY_STATUS, REPLY_ERROR, REPLY_INTEGER, REPLY_ARRAY };

struct redis_reply {
    enum reply_type type;
    struct text text; /* string, status, error */
    int64_t integer;
    size_t count; /* array */
    const struct redis_reply *const *items;
};

/* Readers that tell "malformed" by false. NIL is malformed for all but reply_text_or_nil. */
MUST_CHECK bool reply_text(const struct redis_reply *reply, struct text *ret_text);
MUST_CHECK bool reply_text_or_nil(const struct redis_reply *reply, struct text *ret_text); /* nil: {NULL, 0} */
/* A string of at most size - 1 bytes, none of them NUL, to be NUL-terminated in ret_chars. */
MUST_CHECK bool reply_chars(const struct redis_reply *reply, char *ret_chars, size_t size);
/* An integer reply, or a string of decimal digits. */
MUST_CHECK bool reply_integer(const struct redis_reply *reply, int64_t *ret_value);
/* items[index] of an array that has it, else NULL. */
const struct redis_reply *reply_at(const struct redis_reply *reply, size_t index);
/* The value behind "name:" in the lines of INFO; {NULL, 0} if there is none. */
struct text reply_info_value(struct text info, struct text name);
/* The first word of an error reply: "NOSCRIPT", "READONLY", "LOADING", …; {NULL, 0} if it is no error. */
struct text reply_error_kind(const struct redis_reply *reply);
