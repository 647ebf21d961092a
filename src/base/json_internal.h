/* The grammar of RFC 8259, strictly: what cJSON, which is lax, must never see does not get past it. */
#pragma once
#include "base/text.h"

/* Deepest nesting of arrays and objects, the outermost included. */
enum { JSON_DEPTH_MAX = 16 };

/* NULL when body is one JSON object and nothing else, within the limits of json_parse_object(); else what is wrong.
 * Duplicate members are not looked for: names compare only once their escapes are decoded. */
const char *json_scan_object(struct text body);
