/* Records refusals: in the log, and in the usage counts of known keys. */
#pragma once
#include "exchange_internal.h"

/* Call before an exchange is refused with that code, on either listener. Logs at most one line per kind (a row in
 * refusal.c) every REFUSAL_PAUSE_MS, with the number of lines suppressed before it. A flood of one kind hides no other
 * kind. */
void refusal_note(struct exchange *exchange, enum problem_code code);
