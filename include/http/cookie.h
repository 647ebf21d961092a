/* Cookies (RFC 6265bis): finds one by its exact name, and prints Set-Cookie. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

enum cookie_result { COOKIE_ABSENT, COOKIE_ONE, COOKIE_SEVERAL };
/* Looks for one name, case-sensitively, in the value of a Cookie header. ret_value is set with COOKIE_ONE only. */
enum cookie_result cookie_find(struct text header, struct text name, struct text *ret_value);
/* Prints "<name>=<value>; Path=/; Secure; HttpOnly; SameSite=Strict", and Max-Age unless max_age_s is negative. 0 makes
 * the browser delete the cookie. */
void cookie_print(struct text name, struct text value, int64_t max_age_s, struct buf *out);
