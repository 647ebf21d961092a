/* What the two listeners have in common: the ladder of guard.c. */
#pragma once
#include "exchange_internal.h"

/* Credential, route and method, permission; then exchange->admit runs, or the exchange has been refused: now, or later
 * with the request held. To be set before: request, service, method, path, mount, admit. */
void guard_begin(struct exchange *exchange);
