/* What the two listeners have in common: the ladder of guard.c. */
#pragma once
#include "exchange_internal.h"

/* Sets exchange->path to the normal form of a path as it was sent. False where it has none: 400. */
MUST_CHECK bool guard_read_path(struct exchange *exchange, struct text path);
bool guard_path_lies_under(struct text path, struct text folder);
/* Credential, route and method, permission; then exchange->admit runs, or the exchange has been refused: now, or later
 * with the request held. To be set before: request, service, method, path, admit. */
void guard_judge(struct exchange *exchange);
