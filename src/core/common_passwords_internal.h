/* Tells common passwords: a list of widely used ones, the words that others are made of, and an estimate of how soon
 * those are guessed (password_strength.c). */
#pragma once
#include "base/text.h"

/* Both lists are in lower case, with a comma between two entries: read them with text_next().
 *
 * Of the 50,000 passwords that leaks name most often (the lists of Django and zxcvbn-ts), only 434 have 12 characters
 * or more. Those that no rule of account.c and no estimate refuses are here, with others of the kind. Compared as a
 * whole, ignoring ASCII case. */
extern const struct text COMMON_PASSWORDS;

/* Words that people choose for passwords: from published counts of leaked ones, and from the everyday language of
 * clinics and computing. */
extern const struct text COMMON_WORDS;

/* Of a longer password, only this much is judged. */
enum { PASSWORD_JUDGED_BYTES = 128 };

/* About log2 of the number of guesses that find the password, if the guesser first tries known words in any spelling,
 * years, sequences and keyboard walks. context: words that this user is likely to choose; their case is ignored. */
unsigned password_guess_bits(struct text password, const struct text *context, size_t context_count);
