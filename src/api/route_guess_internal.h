/* Suggestions for a request whose path or method does not exist. */
#pragma once
#include "problem_internal.h"

/* not_found, with the nearest path, or with what does what was asked for. Paths that a policy gives to backends are not
 * among them. path: normalised, or as sent. */
struct problem route_guess(enum http_method method, struct text path);
