/* Finds the row for a request. */
#pragma once
#include "api/routes.h"

struct route_match {
    const struct route *route;   /* the row for path and method; NULL: none */
    const struct route *sibling; /* any row for the path; NULL: the path is not in the table */
    struct text id;              /* the path segment in place of "{id}" */
};

/* path: normalised. The id of the match points into it. */
struct route_match route_find(enum http_method method, struct text path);
/* Appends the value of Allow for the row's path, such as "GET, HEAD, POST". */
void route_print_allow(const struct route *row, struct buf *out);
