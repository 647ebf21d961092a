/* What a route of other backends needs (api.md 4): a table by path, the built-in one or an operator's file:
 *
 *   {"version": 1, "routes": [{"path": "/v1/patients", "read": "patients:read", "write": "patients:write"},
 *                             {"path": "/v1/documents", "read": null, "write": "documents:write"},
 *                             {"path": "/v1/usage", "read": "usage:read"},
 *                             {"path": "/v1/console/patients", "read": "session", "write": "step_up"}]}
 *
 * "read" speaks for GET and HEAD, "write" for all other methods. Below /v1/console/ it is "session" (any) or "step_up"
 * (one with a recent step-up), elsewhere a key's scope; null: nobody may (403); left out: the method is not allowed
 * (405). Routes of the product itself can't be named; what lies below /v1/api_keys needs keys:manage whatever the file
 * says.
 *
 * A path covers itself and all below it. A segment "*" stands for any one segment that is not empty; the first one
 * behind /v1/ or /v1/console/ must be a name. Of several rows that cover a path the one with most segments counts; of
 * equally long ones that which has a name where the other has "*", at the first segment where they differ. So no two
 * rows tie. A path that the row which counts covers only if the case of letters is ignored is unknown: a backend that
 * ignores it must not be reached under a wider row. */
#pragma once
#include "core/scope.h"

struct route_policy;

enum policy_verdict {
    POLICY_UNKNOWN, /* no row covers the path: 404 */
    POLICY_METHOD,  /* 405 */
    POLICY_DENY,    /* 403: nobody may */
    POLICY_SCOPE,   /* needs *ret_scope */
    POLICY_SESSION, /* needs a session; only below /v1/console/, where POLICY_SCOPE never is */
    POLICY_STEP_UP, /* needs one with a recent step-up; likewise */
};

struct route_policy *route_policy_built_in(void);
/* Whether a path is a route of the product itself, which no file can set. */
typedef bool route_policy_is_own(struct text path);
/* NULL on a file that is not right in every point; ret_why is then one sentence. */
struct route_policy *route_policy_parse(struct text json, route_policy_is_own *is_own, struct buf *ret_why);
void route_policy_destroy(struct route_policy *policy);
/* The path of the row that covers a normalised path; empty: none does. Lives as long as the policy. */
struct text route_policy_row(const struct route_policy *policy, struct text path);
/* path: normalised. ret_allow: with POLICY_METHOD, the value of Allow. */
enum policy_verdict route_policy_find(const struct route_policy *policy, struct text path, bool is_read,
                                      scope_set *ret_scope, const char **ret_allow);
