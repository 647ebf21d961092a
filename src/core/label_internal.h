/* Names that people give to things (keys, accounts): text that is safe to show. */
#pragma once
#include "base/text.h"

/* 1 to max_chars code points of valid UTF-8, not all blank. No control characters (C0, DEL, C1), which would reach
 * terminals and logs. No format characters (category Cf: direction marks, joiners, zero-width characters), which make
 * one name look like another. No secret of a key, which would be shown wherever the name is. Stored names are not
 * checked again, so older ones are still read. */
MUST_CHECK bool label_valid(struct text t, size_t max_chars);
/* t must be valid UTF-8. */
bool label_has_control(struct text t);
