/* Bodies of application/x-www-form-urlencoded, each route's by a table, as OAuth reads them (RFC 6749 section 3.2): a
 * parameter without a value counts as left out, one that is not known is ignored, and none may come twice. */
#pragma once
#include "base/text.h"

struct form_field {
    const char *name;
    bool required;
    size_t offset; /* of a struct text in the target, which is left as it was where the parameter is not there */
};

enum form_result {
    FORM_OK,
    FORM_MALFORMED, /* a broken escape, NUL, no UTF-8, or more parameters than anybody sends */
    FORM_REPEATED,
    FORM_MISSING,
};
/* storage: body.len bytes for what is decoded; the texts in the target point into it. ret_name tells the parameter that
 * came twice (in storage) or is missing. */
MUST_CHECK enum form_result form_read(struct text body, char *storage, const struct form_field *fields, size_t count,
                                      void *target, struct text *ret_name);
