/* The last step before a handler: the parameters and the body of a request that may pass (415, 413, 400). */
#pragma once
#include "exchange_internal.h"

/* Reads what the row that has matched takes, then runs its handler; or refuses. */
void entry_enter(struct exchange *exchange);
