/* Words by which the trail and the console call actors without a name. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

/* Whether the text is such a word, in any case (of ASCII) and with any blanks around and between words: a key or a
 * device of that name would look like somebody else. */
MUST_CHECK bool actor_word_is(struct text name);
