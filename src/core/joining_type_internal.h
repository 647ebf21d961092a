/* How letters of cursive scripts, such as Arabic, join their neighbours (Unicode, section 9.2). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Joining_Type D or L, in the order of the text: a letter that comes after it is joined to it. */
bool joins_the_next(uint32_t code);
/* Joining_Type D or R. */
bool joins_the_one_before(uint32_t code);
