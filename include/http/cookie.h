/* Cookies (RFC 6265bis): strict by exact name, and Set-Cookie from one struct. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

enum cookie_result { COOKIE_ABSENT, COOKIE_ONE, COOKIE_SEVERAL };
/* Looks for one name, case-sensitively, in the value of a Cookie header. */
enum cookie_result cookie_find(struct text header, struct text name, struct text *ret_value);
/* "<name>=<value>; Path=/; Secure; HttpOnly; SameSite=Strict"; max_age_s < 0: without Max-Age, 0: clears. */
void cookie_print(struct text name, struct text value, int64_t max_age_s, struct buf *out);
