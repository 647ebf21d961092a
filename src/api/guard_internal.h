/* The access checks that both listeners share (guard.c). */
#pragma once
#include "exchange_internal.h"

/* Checks credential, route, method and permission, then runs exchange->admit or refuses the exchange: now, or later
 * with the request held. Set request, service, method, path, mount and admit before. */
void guard_begin(struct exchange *exchange);
