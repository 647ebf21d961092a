/* The route table: a row is the complete security of an endpoint. The guard enforces it, and tests walk it. */
#pragma once
#include "core/scope.h"
#include "http/request.h"

struct exchange;

enum route_who { WHO_API_KEY, WHO_SESSION, WHO_ANYONE };
enum route_flags {
    ROUTE_JSON = 1 << 0,    /* takes a JSON body */
    ROUTE_CSRF = 1 << 1,    /* a session changes something: X-CSRF-Token and Origin */
    ROUTE_STEP_UP = 1 << 2, /* needs a recent step-up */
    ROUTE_ORIGIN = 1 << 3,  /* Origin alone (login) */
    ROUTE_QUERY = 1 << 4,   /* takes query parameters; on other routes, any is parameter_unknown */
    ROUTE_FORM = 1 << 5,    /* takes an application/x-www-form-urlencoded body (OAuth) */
};

struct route {
    enum http_method method; /* GET rows answer HEAD too */
    const char *path;        /* at most one "{id}" segment */
    void (*handle)(struct exchange *exchange);
    enum route_who who;
    scope_set scope;
    unsigned flags;
};

/* Whether the product itself answers there, and no backend (for route_policy_parse()). path: normalised, below /v1/;
 * "*" segments are allowed. */
bool api_owns_path(struct text path);

extern const struct route ROUTES[];
extern const size_t ROUTE_COUNT;
