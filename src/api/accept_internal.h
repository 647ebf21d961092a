/* Chooses a media type by Accept (RFC 9110 section 12.5.1). */
#pragma once
#include "http/request.h"

/* The index of the type that the client prefers; of several, the first. 0 if it accepts none or says nothing: no route
 * refuses a request for its Accept. */
size_t accept_choose(const struct http_request *request, const struct text *types, size_t count);
