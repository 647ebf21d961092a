/* Authorization: Bearer <token> (RFC 6750 section 2.1, RFC 9110 section 11.4): is it well-formed, and of which shape?
 */
#pragma once
#include "base/text.h"

enum bearer_result {
    BEARER_ABSENT,    /* no Authorization at all */
    BEARER_TOKEN,     /* ret_token is set; its own shape is not judged here */
    BEARER_OTHER,     /* another scheme, well-formed: no credential that is known here */
    BEARER_MALFORMED, /* 400 */
};
/* header: the value of the only Authorization header. The scheme's case does not matter. */
enum bearer_result bearer_read(struct text header, struct text *ret_token);
