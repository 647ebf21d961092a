/* Rows of the policy for the public, and preflights (docker/gateways/public.md; the Fetch standard, "CORS-preflight
 * request"). No credential is needed, none is looked at, and nothing is counted. */
#pragma once
#include "exchange_internal.h"

/* Whether the policy lets anybody send the request, which has no row in the route table. A preflight is an OPTIONS with
 * one Origin and one Access-Control-Request-Method, for a path whose row takes preflights, and for a method that some
 * credential may use there. Any other OPTIONS is a write like others. */
bool open_row_admits(const struct exchange *exchange);
