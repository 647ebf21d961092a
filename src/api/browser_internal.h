/* Keeps browsers away from the internal listener: a page could have its own name lead there (DNS rebinding), and would
 * then read what is answered. */
#pragma once
#include "exchange_internal.h"

/* Whether a client in our own network could have written that Host: an address, a name of one part, one of a domain
 * that cannot be bought (RFC 6761, RFC 6762, RFC 8375), or one of the names, which are separated by commas. */
bool host_is_ours(struct text host, struct text names);
/* True: a browser asks, or somebody by a name that is not ours; the exchange has been refused. */
MUST_CHECK bool browser_is_refused(struct exchange *exchange);
