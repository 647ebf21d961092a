/* A strict scanner for RFC 8259. It stops everything that cJSON, which is lax, must never see. */
#pragma once
#include "base/text.h"

/* Deepest nesting of arrays and objects, the outermost included. */
enum { JSON_DEPTH_MAX = 16 };

/* *ret_wrong is where that is seen, an offset. NULL if body is one JSON object and nothing else, within the limits of
 * json_parse_object(); else what is wrong. It does not look for duplicate members, because names can be compared only
 * after their escapes are decoded. */
const char *json_scan_object(struct text body, size_t *ret_wrong);
