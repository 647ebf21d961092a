/* What somebody may have meant whose path, or method, is none of ours. */
#pragma once
#include "problem_internal.h"

/* not_found, with the nearest path, or with what does what was asked for. Paths that a policy gives to backends are not
 * among them. path: normalised, or as sent. */
struct problem route_guess(enum http_method method, struct text path);
