/* Reads application/x-www-form-urlencoded bodies by a table per route, as OAuth requires (RFC 6749 section 3.2): a
 * parameter without a value counts as missing, unknown ones are ignored, and none may be repeated. */
#pragma once
#include "base/text.h"

struct form_field {
    const char *name;
    bool required;
    size_t offset; /* of a struct text in the target; unchanged if the parameter is missing */
    bool takes_secrets;
};

enum form_result {
    FORM_OK,
    FORM_MALFORMED, /* a broken escape, NUL, invalid UTF-8, or too many parameters */
    FORM_REPEATED,
    FORM_MISSING,
    FORM_SECRET, /* a name, or the value of a parameter that takes none, has the secret of a key */
};
/* storage: body.len bytes for decoded values; the texts in the target point into it. ret_name: the parameter that is
 * repeated (points into storage) or missing. */
MUST_CHECK enum form_result form_read(struct text body, char *storage, const struct form_field *fields, size_t count,
                                      void *target, struct text *ret_name);
