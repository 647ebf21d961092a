#include "api/routes.h"
#include "handlers_internal.h"
#include "routes_internal.h"

#include <string.h>

/* clang-format off */
const struct route ROUTES[] = {
    {HTTP_GET,    "/v1/whoami",                whoami_show,       WHO_API_KEY, SCOPE_NONE,        ROLE_AUDITOR, 0,
     GATE_CHECK},

    {HTTP_POST,   "/v1/api_keys",        keys_create,       WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, ROUTE_JSON,
     GATE_CHANGE},
    {HTTP_GET,    "/v1/api_keys",        keys_list,         WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, ROUTE_QUERY,
     GATE_READ},
    {HTTP_GET,    "/v1/api_keys/{id}",   keys_show,         WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, 0, GATE_READ},
    {HTTP_PATCH,  "/v1/api_keys/{id}",   keys_rename,       WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, ROUTE_JSON,
     GATE_CHANGE},
    {HTTP_DELETE, "/v1/api_keys/{id}",   keys_revoke,       WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, 0, GATE_ONE},
    {HTTP_GET,    "/v1/api_keys/{id}/revocation", keys_certify, WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR, 0,
     GATE_READ},

    {HTTP_POST,   "/v1/api_keys/revoke", keys_revoke_list,  WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_LARGE, GATE_END},
    {HTTP_GET,    "/v1/api_keys/{id}/scheduled_revocation", key_end_show, WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR,
     0, GATE_READ},
    {HTTP_PUT,    "/v1/api_keys/{id}/scheduled_revocation", key_end_set, WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR,
     ROUTE_JSON, GATE_ONE},
    {HTTP_DELETE, "/v1/api_keys/{id}/scheduled_revocation", key_end_withdraw, WHO_API_KEY, SCOPE_KEYS_MANAGE,
     ROLE_AUDITOR, 0, GATE_CHANGE},
    {HTTP_POST,   "/v1/api_keys/{id}/replacement", key_replace, WHO_API_KEY, SCOPE_KEYS_MANAGE, ROLE_AUDITOR,
     ROUTE_JSON, GATE_CHANGE},

    {HTTP_GET,    "/v1/audit",           audit_events_list, WHO_API_KEY, SCOPE_AUDIT_READ, ROLE_AUDITOR,
     ROUTE_QUERY | ROUTE_YIELDS, GATE_WORK},
    {HTTP_GET,    "/v1/audit/heads",     audit_heads_show,  WHO_API_KEY, SCOPE_AUDIT_READ, ROLE_AUDITOR, ROUTE_YIELDS,
     GATE_READ},

    {HTTP_GET,    "/v1/usage",           usage_period_show, WHO_API_KEY, SCOPE_USAGE_READ, ROLE_AUDITOR,
     ROUTE_QUERY | ROUTE_YIELDS, GATE_WORK},

    {HTTP_POST,   "/v1/auth/login",            login_begin,       WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/logout",           logout_begin,      WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_CSRF |
     ROUTE_EXPIRED, GATE_ONE},
    {HTTP_POST,   "/v1/auth/recover",          recovery_begin,    WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/recover/confirm",  recovery_confirm,  WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},

    {HTTP_GET,    "/.well-known/oauth-authorization-server", oauth_metadata_show, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR,
     0, GATE_STRANGER},
    {HTTP_GET,    "/.well-known/jwks.json",    jwks_show,         WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR, 0,
     GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/device_authorization", device_authorize, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_FORM | ROUTE_ORIGIN | ROUTE_OAUTH, GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/token",            device_token,      WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_FORM | ROUTE_ORIGIN | ROUTE_OAUTH, GATE_STRANGER},

    {HTTP_POST,   "/v1/auth/revoke",           token_revoke,      WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_FORM | ROUTE_ORIGIN | ROUTE_TEXT, GATE_ONE},

    {HTTP_GET,    "/v1/console/session",       session_show,      WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_EXPIRED,
     GATE_READ},
    {HTTP_POST,   "/v1/console/step_up",       step_up_begin,     WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_EXPIRED, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/password",      password_change,   WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_EXPIRED, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/totp",          new_totp_begin,    WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_CSRF, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/totp/confirm",  new_totp_confirm,  WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_CSRF, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/recovery_codes", recovery_codes_make, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_CSRF |
     ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_GET,    "/v1/console/recovery_codes", recovery_codes_show, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0,
     GATE_READ},
    {HTTP_GET,    "/v1/console/sessions",      own_sessions_list, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0, GATE_READ},
    {HTTP_DELETE, "/v1/console/sessions",      own_sessions_end,  WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_CSRF |
     ROUTE_STEP_UP, GATE_ONE},
    {HTTP_DELETE, "/v1/console/sessions/{id}", own_session_end,   WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_CSRF,
     GATE_ONE},
    {HTTP_POST,   "/v1/console/api_keys",      keys_create,       WHO_SESSION, SCOPE_NONE, ROLE_DEVELOPER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_GET,    "/v1/console/api_keys",      keys_list,         WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_QUERY,
     GATE_READ},
    {HTTP_GET,    "/v1/console/api_keys/{id}", keys_show,         WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0, GATE_READ},
    {HTTP_PATCH,  "/v1/console/api_keys/{id}", keys_rename,       WHO_SESSION, SCOPE_NONE, ROLE_DEVELOPER,
     ROUTE_JSON | ROUTE_CSRF, GATE_CHANGE},
    {HTTP_DELETE, "/v1/console/api_keys/{id}", keys_revoke,       WHO_SESSION, SCOPE_NONE, ROLE_RESPONDER, ROUTE_CSRF,
     GATE_ONE},
    {HTTP_POST,   "/v1/console/api_keys/revoke", keys_revoke_list, WHO_SESSION, SCOPE_NONE, ROLE_RESPONDER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_LARGE, GATE_END},
    {HTTP_GET,    "/v1/console/api_keys/{id}/revocation", keys_certify, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0,
     GATE_READ},
    {HTTP_GET,    "/v1/console/api_keys/{id}/scheduled_revocation", key_end_show, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     0, GATE_READ},
    {HTTP_PUT,    "/v1/console/api_keys/{id}/scheduled_revocation", key_end_set, WHO_SESSION, SCOPE_NONE,
     ROLE_RESPONDER, ROUTE_JSON | ROUTE_CSRF, GATE_ONE},
    {HTTP_DELETE, "/v1/console/api_keys/{id}/scheduled_revocation", key_end_withdraw, WHO_SESSION, SCOPE_NONE,
     ROLE_DEVELOPER, ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/api_keys/{id}/replacement", key_replace, WHO_SESSION, SCOPE_NONE, ROLE_DEVELOPER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_GET,    "/v1/console/device_keys",   keys_list,         WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_DEVICE | ROUTE_QUERY, GATE_READ},
    {HTTP_DELETE, "/v1/console/device_keys/{id}", keys_revoke,  WHO_SESSION, SCOPE_NONE, ROLE_RESPONDER,
     ROUTE_DEVICE | ROUTE_CSRF, GATE_ONE},
    {HTTP_GET,    "/v1/console/device_keys/{id}/revocation", keys_certify, WHO_SESSION, SCOPE_NONE,
     ROLE_AUDITOR, ROUTE_DEVICE, GATE_READ},
    {HTTP_GET,    "/v1/console/device_enrolments/{id}", enrolment_show, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0,
     GATE_READ},
    {HTTP_POST,   "/v1/console/device_enrolments/{id}/approve", enrolment_approve, WHO_SESSION, SCOPE_NONE,
     ROLE_DEVELOPER, ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/device_enrolments/{id}/deny", enrolment_deny, WHO_SESSION, SCOPE_NONE, ROLE_RESPONDER,
     ROUTE_CSRF, GATE_CHANGE},
    {HTTP_GET,    "/v1/console/users",         people_list,       WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_QUERY,
     GATE_READ},
    {HTTP_GET,    "/v1/console/users/{id}",    person_show,       WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0, GATE_READ},
    {HTTP_DELETE, "/v1/console/users/{id}",    person_remove,     WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_QUERY | ROUTE_CSRF | ROUTE_STEP_UP, GATE_END},
    {HTTP_POST,   "/v1/console/users/{id}/role", person_set_role, WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP, GATE_END},
    {HTTP_POST,   "/v1/console/users/{id}/disable", person_disable, WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP, GATE_END},
    {HTTP_POST,   "/v1/console/users/{id}/enable", person_enable, WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_POST,   "/v1/console/users/{id}/reset", person_reset,   WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_CSRF | ROUTE_STEP_UP, GATE_END},
    {HTTP_POST,   "/v1/console/invitations",   invitation_create, WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_JSON | ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_GET,    "/v1/console/invitations",   invitations_list,  WHO_SESSION, SCOPE_NONE, ROLE_OWNER, ROUTE_QUERY,
     GATE_READ},
    {HTTP_DELETE, "/v1/console/invitations/{id}", invitation_withdraw, WHO_SESSION, SCOPE_NONE, ROLE_OWNER,
     ROUTE_CSRF | ROUTE_STEP_UP, GATE_CHANGE},
    {HTTP_POST,   "/v1/auth/join/begin",       join_begin,        WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/join/start",       join_start,        WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},
    {HTTP_POST,   "/v1/auth/join",             join_finish,       WHO_ANYONE,  SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_JSON | ROUTE_ORIGIN, GATE_STRANGER},
    {HTTP_GET,    "/v1/team",                  people_list,       WHO_API_KEY, SCOPE_TEAM_MANAGE, ROLE_AUDITOR,
     ROUTE_LIVE | ROUTE_QUERY | ROUTE_YIELDS, GATE_READ},
    {HTTP_POST,   "/v1/team/invitations",      invitation_create, WHO_API_KEY, SCOPE_TEAM_MANAGE, ROLE_AUDITOR,
     ROUTE_LIVE | ROUTE_JSON | ROUTE_YIELDS, GATE_CHANGE},
    {HTTP_DELETE, "/v1/team/{id}",             team_remove,       WHO_API_KEY, SCOPE_TEAM_MANAGE, ROLE_AUDITOR,
     ROUTE_LIVE | ROUTE_QUERY | ROUTE_YIELDS, GATE_END},
    {HTTP_GET,    "/v1/console/audit_events",  audit_events_list, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_QUERY,
     GATE_WORK},
    {HTTP_GET,    "/v1/console/audit_events/heads", audit_heads_show, WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0,
     GATE_READ},
    {HTTP_GET,    "/v1/console/usage",         usage_show,        WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, ROUTE_QUERY,
     GATE_WORK},
    {HTTP_GET,    "/v1/console/system",        system_show,       WHO_SESSION, SCOPE_NONE, ROLE_AUDITOR, 0, GATE_READ},
};
/* clang-format on */

const size_t ROUTE_COUNT = sizeof ROUTES / sizeof *ROUTES;

/* Matches "{id}", one segment that is not empty, and whatever follows it. */
static bool rest_fits(const char *pattern, struct text path, struct text *ret_id)
{
    struct text id = path;

    for (id.len = 0; id.len < path.len && path.ptr[id.len] != '/';)
        id.len++;
    if (id.len == 0 || !text_equal(text_skip(path, id.len), text_of(strchr(pattern, '}') + 1)))
        return false;
    *ret_id = id;
    return true;
}

static bool path_fits(const char *pattern, struct text path, struct text *ret_id)
{
    const char *end = strchrnul(pattern, '{');
    const struct text fixed = {pattern, (size_t)(end - pattern)};

    if (*end == '\0')
        return text_equal(path, fixed);
    return text_starts_with(path, fixed) && rest_fits(end, text_skip(path, fixed.len), ret_id);
}

/* One of 64 bits, by the first ROUTE_HEAD_BYTES of a path. */
static uint64_t sketch_of(const char *path)
{
    uint64_t head;

    memcpy(&head, path, sizeof head);
    return UINT64_C(1) << (head * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

/* The bits of all rows, whose fixed part is never shorter. Most checks ask about a path of a backend, which has another
 * bit. */
static uint64_t sketch_of_all(void)
{
    static uint64_t sketch;

    if (sketch == 0)
        for (size_t i = 0; i < ROUTE_COUNT; i++)
            sketch |= sketch_of(ROUTES[i].path);
    return sketch;
}

/* Passes over the rows of other folders by one comparison. */
static bool head_fits(const char *pattern, struct text path)
{
    return memcmp(pattern, path.ptr, ROUTE_HEAD_BYTES) == 0;
}

static bool method_fits(const struct route *row, enum http_method method)
{
    return row->method == method || (row->method == HTTP_GET && method == HTTP_HEAD);
}

struct route_match route_find(enum http_method method, struct text path)
{
    struct route_match match = {0};

    if (path.len < ROUTE_HEAD_BYTES || !(sketch_of(path.ptr) & sketch_of_all()))
        return match;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!head_fits(ROUTES[i].path, path) || !path_fits(ROUTES[i].path, path, &match.id))
            continue;
        match.sibling = &ROUTES[i];
        if (method_fits(&ROUTES[i], method)) {
            match.route = &ROUTES[i];
            break;
        }
    }
    return match;
}

bool route_yields(const struct route *row, const struct route_policy *policy)
{
    return (row->flags & ROUTE_YIELDS) && route_policy_has_folder(policy, text_of(row->path));
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
