/* Tells common passwords: a list of widely used ones, the words that others are made of, and an estimate of how soon
 * those are guessed (password_strength.c). */
#pragma once
#include "base/text.h"

/* Of the 50,000 passwords that leaks name most often (the lists of Django and zxcvbn-ts), only 434 have 12 characters
 * or more. Those that no rule refuses are here, with others of the kind. Compared as a whole, ignoring ASCII case.
 * Simple repetitions and runs are found by rule instead (account.c). */
extern const char *const COMMON_PASSWORDS[];
extern const size_t COMMON_PASSWORD_COUNT;

extern const char *const COMMON_WORDS[];
extern const size_t COMMON_WORD_COUNT;

/* Of a longer password, only this much is judged. */
enum { PASSWORD_JUDGED_BYTES = 128 };

/* About log2 of the number of guesses that find the password, if the guesser first tries known words in any spelling,
 * years, sequences and keyboard walks. context: words that this user is likely to choose; their case is ignored. */
unsigned password_guess_bits(struct text password, const struct text *context, size_t context_count);
