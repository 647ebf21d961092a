/* Refusals leave a trace: what is told of them to the log, and to the counts of keys that are known. */
#pragma once
#include "exchange_internal.h"

/* Before a exchange is refused with that code, on either listener. One line a kind (a code of the table in refusal.c)
 * and REFUSAL_PAUSE_MS, with the number of those that were not written before it: a flood of one kind hides no other.
 */
void refusal_note(struct exchange *exchange, enum problem_code code);
