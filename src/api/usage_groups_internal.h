/* Usage of a period, in groups. */
#pragma once
#include "exchange_internal.h"

/* Replies with the groups that the query asks for. Read under the account of the exchange; a test key sees test usage.
 */
void usage_groups_show(struct exchange *exchange, const struct usage_period *period);
