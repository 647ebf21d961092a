/* Chooses a media type by Accept (RFC 9110 section 12.5.1). */
#pragma once
#include "http/request.h"

/* A type and what it stands for: several may be names of the same. */
struct accept_row {
    struct text type;
    int form;
};

/* The form that the client prefers; of several, the one that it names most exactly, then the first. The first one if
 * it says nothing. False: it accepts none. */
MUST_CHECK bool accept_choose(const struct http_request *request, const struct accept_row *rows, size_t count,
                              int *ret_form);
