/* Which scope a route of other backends needs (api.md 4): a table by path prefix, the built-in one or an operator's
 * file:
 *
 *   {"version": 1, "routes": [{"path": "/v1/patients", "read": "patients:read", "write": "patients:write"},
 *                             {"path": "/v1/documents", "read": null, "write": "documents:write"},
 *                             {"path": "/v1/usage", "read": "usage:read"}]}
 *
 * A path covers itself and all below it; the longest matching one counts. "read" speaks for GET and HEAD, "write" for
 * all other methods; a scope name; null: no key may (403); left out: the method is not allowed (405). Routes of the
 * product itself (/v1/api_keys, /v1/whoami, /v1/auth, /v1/console) can't be named; what lies below /v1/api_keys needs
 * keys:manage whatever the file says. */
#pragma once
#include "core/scope.h"

struct route_policy;

enum policy_verdict {
    POLICY_UNKNOWN, /* no row covers the path: 404 */
    POLICY_METHOD,  /* 405 */
    POLICY_DENY,    /* 403: no scope exists that would allow it */
    POLICY_SCOPE,   /* needs *ret_scope */
};

struct route_policy *route_policy_standard(void);
/* NULL on a file that is not right in every point; ret_why is then one sentence. */
struct route_policy *route_policy_parse(struct text json, struct buf *ret_why);
void route_policy_destroy(struct route_policy *policy);
/* path: normalised. ret_allow: with POLICY_METHOD, the value of Allow. */
enum policy_verdict route_policy_find(const struct route_policy *policy, struct text path, bool is_read,
                                      scope_set *ret_scope, const char **ret_allow);
