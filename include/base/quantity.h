/* Times and sizes as people write them: 500ms, 30s, 5min, 12h, 7d; 8000, 64KiB, 96MiB, 1GiB. */
#pragma once
#include "base/text.h"

enum quantity_kind {
    QUANTITY_TIME, /* in milliseconds */
    QUANTITY_SIZE, /* in bytes */
};

/* A whole number and a unit, or a bare number of milliseconds or bytes. Units are case-sensitive, because Mb, MB and
 * MiB are three different sizes. False: no number, a sign, a fraction, an unknown unit, or more than INT64_MAX. */
MUST_CHECK bool quantity_parse(enum quantity_kind kind, struct text t, int64_t *ret_value);
/* In the largest unit that needs no fraction. value must not be negative. quantity_parse() reads it back. */
void quantity_print(enum quantity_kind kind, int64_t value, struct buf *out);
/* The form that quantity_parse() accepts, to follow a colon in an error: "a number and ms, s, min, h or d". */
const char *quantity_form(enum quantity_kind kind);
