/* The access log: one line for a random sample of requests (--access-log-sample). */
#pragma once
#include "exchange_internal.h"

/* Call at the beginning of each exchange, before anything replies. Decides whether it is logged once it is answered. */
void access_log_begin(struct exchange *exchange);
