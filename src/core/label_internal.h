/* Names that people give to things (keys, accounts): text that is safe to show. */
#pragma once
#include "base/text.h"

/* 1 to max_chars code points of valid UTF-8, no control characters (C0, DEL, C1): they would end up on terminals and in
 * logs. */
MUST_CHECK bool label_valid(struct text t, size_t max_chars);
/* t is valid UTF-8. */
bool label_has_control(struct text t);
