/* Reads Authorization: Bearer <token> (RFC 6750 section 2.1, RFC 9110 section 11.4). */
#pragma once
#include "base/text.h"

enum bearer_result {
    BEARER_ABSENT,    /* no Authorization header */
    BEARER_TOKEN,     /* ret_token is set; the token's shape is not checked here */
    BEARER_OTHER,     /* another scheme, well-formed; not a credential here */
    BEARER_MALFORMED, /* 400 */
};
/* header: the value of the only Authorization header. The scheme's case does not matter. */
enum bearer_result bearer_read(struct text header, struct text *ret_token);
/* Why such a header is BEARER_MALFORMED: one sentence about the most likely mistake, with no more of the token than one
 * character that no key has. out: room for BEARER_WHY_BYTES. */
enum { BEARER_WHY_BYTES = 160 };
void bearer_explain(struct text header, struct buf *out);
