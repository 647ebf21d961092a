/* Content-Type (RFC 9110 section 8.3). */
#pragma once
#include "base/text.h"

enum media_fit {
    MEDIA_FITS,
    MEDIA_OTHER,   /* another type */
    MEDIA_CHARSET, /* the type, in a charset that is not UTF-8 */
};
/* Whether the value is this type ("application/json") in UTF-8, which may be spelt in any case, quoted or not, with or
 * without the hyphen. Other parameters mean nothing for the types that are read here, and are ignored. ret_charset:
 * with MEDIA_CHARSET, its value as sent, quotes included. */
enum media_fit media_type_judge(struct text value, struct text type, struct text *ret_charset);
