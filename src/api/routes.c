#include "api/routes.h"
#include "handlers_internal.h"
#include "routes_internal.h"

/* clang-format off */
const struct route ROUTES[] = {
    {HTTP_GET,    "/v1/whoami",                whoami_show,       WHO_API_KEY, SCOPE_NONE,        0},

    {HTTP_POST,   "/v1/api_keys",              keys_create,       WHO_API_KEY, SCOPE_KEYS_MANAGE, ROUTE_JSON},
    {HTTP_GET,    "/v1/api_keys",              keys_list,         WHO_API_KEY, SCOPE_KEYS_MANAGE, ROUTE_QUERY},
    {HTTP_GET,    "/v1/api_keys/{id}",         keys_show,         WHO_API_KEY, SCOPE_KEYS_MANAGE, 0},
    {HTTP_DELETE, "/v1/api_keys/{id}",         keys_revoke,       WHO_API_KEY, SCOPE_KEYS_MANAGE, 0},

    {HTTP_POST,   "/v1/auth/login",            login_begin,       WHO_ANYONE,  SCOPE_NONE, ROUTE_JSON | ROUTE_ORIGIN},
    {HTTP_POST,   "/v1/auth/logout",           logout_begin,      WHO_SESSION, SCOPE_NONE, ROUTE_CSRF},

    {HTTP_GET,    "/v1/console/session",       session_show,      WHO_SESSION, SCOPE_NONE, 0},
    {HTTP_POST,   "/v1/console/step_up",       step_up_begin,     WHO_SESSION, SCOPE_NONE, ROUTE_JSON | ROUTE_CSRF},
    {HTTP_POST,   "/v1/console/api_keys",      keys_create,       WHO_SESSION, SCOPE_NONE,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP},
    {HTTP_GET,    "/v1/console/api_keys",      keys_list,         WHO_SESSION, SCOPE_NONE, ROUTE_QUERY},
    {HTTP_GET,    "/v1/console/api_keys/{id}", keys_show,         WHO_SESSION, SCOPE_NONE, 0},
    {HTTP_DELETE, "/v1/console/api_keys/{id}", keys_revoke,       WHO_SESSION, SCOPE_NONE, ROUTE_CSRF},
    {HTTP_GET,    "/v1/console/audit_events",  audit_events_list, WHO_SESSION, SCOPE_NONE, ROUTE_QUERY},
    {HTTP_GET,    "/v1/console/usage",         usage_show,        WHO_SESSION, SCOPE_NONE, ROUTE_QUERY},
};
/* clang-format on */

const size_t ROUTE_COUNT = sizeof ROUTES / sizeof *ROUTES;

/* "{id}" stands at the end of a pattern, for one segment that is not empty. */
static bool path_fits(const char *pattern, struct text path, struct text *ret_id)
{
    struct text id;
    size_t at = 0;

    while (pattern[at] != '\0' && pattern[at] != '{') {
        if (at == path.len || pattern[at] != path.ptr[at])
            return false;
        at++;
    }
    id = text_skip(path, at);
    if (pattern[at] == '\0')
        return id.len == 0;
    if (id.len == 0)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (id.ptr[i] == '/')
            return false;
    *ret_id = id;
    return true;
}

static bool method_fits(const struct route *row, enum http_method method)
{
    return row->method == method || (row->method == HTTP_GET && method == HTTP_HEAD);
}

struct route_match route_find(enum http_method method, struct text path)
{
    struct route_match match = {0};

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!path_fits(ROUTES[i].path, path, &match.id))
            continue;
        match.sibling = &ROUTES[i];
        if (method_fits(&ROUTES[i], method)) {
            match.route = &ROUTES[i];
            break;
        }
    }
    return match;
}

void route_print_allow(const struct route *row, struct buf *out)
{
    static const struct {
        enum http_method method;
        const char *allow;
    } NAMES[] = {{HTTP_GET, "GET, HEAD"},
                 {HTTP_POST, "POST"},
                 {HTTP_PUT, "PUT"},
                 {HTTP_PATCH, "PATCH"},
                 {HTTP_DELETE, "DELETE"}};
    struct text path = text_of(row->path);

    for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++)
        for (size_t i = 0; i < ROUTE_COUNT; i++) {
            if (ROUTES[i].method != NAMES[n].method || !text_equal(text_of(ROUTES[i].path), path))
                continue;
            if (out->len)
                buf_append_str(out, ", ");
            buf_append_str(out, NAMES[n].allow);
        }
}
