/* What makes a password common: whole ones that are often used, the words that others are made of, and a judgement of
 * what is made of them (password_strength.c). */
#pragma once
#include "base/text.h"

/* Compared whole and without ASCII case; plain repetitions and runs are found by rule instead (account.c). */
extern const char *const COMMON_PASSWORDS[];
extern const size_t COMMON_PASSWORD_COUNT;

extern const char *const COMMON_WORDS[];
extern const size_t COMMON_WORD_COUNT;

/* What is longer is judged by so much of it. */
enum { PASSWORD_JUDGED_BYTES = 128 };

/* About log2 of the guesses that the password takes of somebody who tries known words in any spelling, years, sequences
 * and walks on the keyboard first. context: words that only this user is likely to choose, in any case. */
unsigned password_guess_bits(struct text password, const struct text *context, size_t context_count);
