/* Redis replies as values. Valid until the callback that receives them returns. */
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

/* Readers return false for a malformed reply and then leave the output untouched. Nil is malformed except for
 * reply_text_or_nil(). A NULL reply is malformed. */
MUST_CHECK bool reply_text(const struct redis_reply *reply, struct text *ret_text);
MUST_CHECK bool reply_text_or_nil(const struct redis_reply *reply, struct text *ret_text); /* nil: {NULL, 0} */
/* A string of less than size bytes without a NUL byte. Writes it to ret_chars with a NUL at the end. */
MUST_CHECK bool reply_chars(const struct redis_reply *reply, char *ret_chars, size_t size);
/* An integer reply, or a string of decimal digits with an optional minus sign. */
MUST_CHECK bool reply_integer(const struct redis_reply *reply, int64_t *ret_value);
MUST_CHECK bool reply_count(const struct redis_reply *reply, uint64_t *ret_count); /* an integer not below 0 */
/* items[index], or NULL if the reply is no array or too short. */
const struct redis_reply *reply_at(const struct redis_reply *reply, size_t index);
/* The value behind that name, in an array of alternating names and values; NULL: there is none. */
const struct redis_reply *reply_named(const struct redis_reply *reply, struct text name);
/* The same if it is a string; {NULL, 0}: there is none. */
struct text reply_named_text(const struct redis_reply *reply, struct text name);
/* The value of "name:" in INFO's output; {NULL, 0}: there is none. */
struct text reply_info_value(struct text info, struct text name);
/* The first word of an error reply: "NOSCRIPT", "READONLY", "LOADING", …; {NULL, 0}: not an error. */
struct text reply_error_kind(const struct redis_reply *reply);
/* An error reply as it may be shown: without the arguments that some errors quote, which may be digests or records.
 * {NULL, 0}: not an error. */
struct text reply_error_shown(const struct redis_reply *reply);
/* The same for the text of an error that a script has caught. */
struct text reply_caught_error_shown(struct text error);
