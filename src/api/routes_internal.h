/* Finds the row for a request. */
#pragma once
#include "api/routes.h"
#include "core/route_policy.h"

enum { ROUTE_HEAD_BYTES = 8 }; /* "/v1/team" */

struct route_match {
    const struct route *route;   /* the row for path and method; NULL: none */
    const struct route *sibling; /* any row for the path; NULL: the path is not in the table */
    struct text id;              /* the path segment in place of "{id}" */
};

/* path: normalised. The id of the match points into it. */
struct route_match route_find(enum http_method method, struct text path);
/* Whether the policy gives the row's folder to a backend. Then the row does not exist: requests are decided by the
 * policy alone, and the public listener answers 404. */
bool route_yields(const struct route *row, const struct route_policy *policy);
/* Appends the value of Allow for the row's path, such as "GET, HEAD, POST". */
void route_print_allow(const struct route *row, struct buf *out);
