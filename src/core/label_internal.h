/* Names that people give to things (keys, accounts): text that is safe to show. */
#pragma once
#include "base/text.h"

/* 1 to max_chars code points of valid UTF-8, and not only blanks: no control characters (C0, DEL, C1), which would end
 * up on terminals and in logs; no format characters (category Cf: marks of direction, joiners, what has no width), by
 * which one name looks like another. What was named before that is still read. */
MUST_CHECK bool label_valid(struct text t, size_t max_chars);
/* t is valid UTF-8. */
bool label_has_control(struct text t);
