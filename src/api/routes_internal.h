/* Finding the row of a request. */
#pragma once
#include "api/routes.h"

struct route_match {
    const struct route *route;   /* the row of path and method; NULL: there is none */
    const struct route *sibling; /* any row of the path; NULL: the path is not in the table */
    struct text id;              /* what stands for "{id}" */
};

/* path: normalised. The text of the match points into it. */
struct route_match route_find(enum http_method method, struct text path);
/* The value of Allow for a row's path: "GET, HEAD, POST". */
void route_print_allow(const struct route *row, struct buf *out);
