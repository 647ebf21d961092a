#pragma once
#include <stdint.h>

/* By byte: whether it may be in a token, before the '=' at its end (token68, RFC 9110 section 11.2). */
extern const uint8_t BEARER_TOKEN68[256];
