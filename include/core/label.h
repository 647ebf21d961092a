/* Names that people give to things (keys, devices, accounts): text in any script that is safe to show. */
#pragma once
#include "base/text.h"
#include "core/limits.h"

enum { LABEL_MAX_CHARS = KEY_NAME_MAX_CHARS, LABEL_WHY_BYTES = 192 };

/* 1 to LABEL_MAX_CHARS code points of valid UTF-8, with something that can be seen, and without:
 * - control characters, which would reach terminals and logs, and line separators;
 * - characters that reorder the text around them: bidi embeddings, overrides and isolates;
 * - what cannot be seen, and makes one name look like another. Joiners are allowed where they change what is seen
 *   (RFC 5892, appendix A.1 and A.2; emoji), direction marks beside visible text, tags and variation selectors behind
 *   what they change;
 * - combining marks at the beginning, and more than 30 in a row (UAX #15, Stream-Safe);
 * - code points that stand for no character;
 * - the secret of a key, which would be shown wherever the name is.
 * Stored names are not checked again, so older ones are still read. */
MUST_CHECK bool label_valid(struct text t);
/* Why label_valid() refuses a text: one sentence that begins with what it is ("name"), without the text itself. out:
 * room for LABEL_WHY_BYTES. */
void label_explain(struct text t, const char *what, struct buf *out);
/* t must be valid UTF-8. */
bool label_has_control(struct text t);
