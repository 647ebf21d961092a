/* The requirements of backends' routes (src/api/README.md#the-route-policy): a table by path, built in or from an
 * operator's file:
 *
 *   {"version": 1, "routes": [{"path": "/v1/patients", "read": "patients:read", "write": "patients:write"},
 *                             {"path": "/v1/documents", "read": null, "write": "documents:write"},
 *                             {"path": "/v1/documents/types", "read": "public", "preflight": true},
 *                             {"path": "/v1/usage", "read": "usage:read"},
 *                             {"path": "/v1/console/patients", "read": "session", "write": "step_up"}]}
 *
 * "read" is for GET and HEAD, "write" for all other methods. Below /v1/console/ it is "session" (any) or "step_up" (one
 * with a recent step-up), elsewhere a key's scope; null: nobody may (403). Omitted: the method is not allowed (405).
 * "read" may also be "public", and "preflight" true: then anybody may, whatever credential is sent. Not below
 * /v1/console/, whose sessions are for pages of our own origin.
 * Routes of the product itself cannot be named; everything below /v1/api_keys needs keys:manage, whatever the file
 * says. The product's routes that yield (api/routes.h) can be named: they are then a backend's.
 *
 * A path covers itself and everything below it. A segment "*" matches any one non-empty segment; the first segment
 * after /v1/ or /v1/console/ must be a name. If several rows cover a path, the one with the most segments wins; ties go
 * to the row with the leftmost name in place of a "*". So no two rows tie. If the winning row covers the path only when
 * case is ignored, the path is unknown: a backend that ignores case must not be reached under a wider row. */
#pragma once
#include "core/scope.h"

struct route_policy;

enum policy_verdict {
    POLICY_UNKNOWN, /* no row covers the path: 404 */
    POLICY_METHOD,  /* 405 */
    POLICY_DENY,    /* 403: nobody may */
    POLICY_SCOPE,   /* needs *ret_scope */
    POLICY_SESSION, /* needs a session; only below /v1/console/, where POLICY_SCOPE never is */
    POLICY_STEP_UP, /* needs one with a recent step-up; only below /v1/console/ */
    POLICY_PUBLIC,  /* anybody may read */
};

struct route_policy *route_policy_built_in(void);
/* Whether a path is a route of the product itself, which no file can set. */
typedef bool route_policy_is_own(struct text path);
/* NULL if anything in the file is wrong; ret_why is then one sentence. */
struct route_policy *route_policy_parse(struct text json, route_policy_is_own *is_own, struct buf *ret_why);
void route_policy_destroy(struct route_policy *policy);
/* A number that tells the rows of this policy from others, the same in every process and release; never 0. */
uint32_t route_policy_digest(const struct route_policy *policy);
/* The path of the row that covers a normalised path; empty if none does. Lives as long as the policy. */
struct text route_policy_row(const struct route_policy *policy, struct text path);
/* Whether a row is in the path's folder (its first segment after /v1/), at any depth and in any case. */
bool route_policy_has_folder(const struct route_policy *policy, struct text path);
/* Whether any row is public or takes preflights. */
bool route_policy_has_open_rows(const struct route_policy *policy);
/* Whether the row that covers a normalised path lets everybody read. */
bool route_policy_is_public(const struct route_policy *policy, struct text path);
/* Whether it lets browsers ask, without a credential, if they may send a request that reads or writes. Never for one
 * that nobody may send. */
bool route_policy_takes_preflight(const struct route_policy *policy, struct text path, bool is_read);
/* path: normalised. ret_allow: with POLICY_METHOD, the value of Allow. */
enum policy_verdict route_policy_find(const struct route_policy *policy, struct text path, bool is_read,
                                      scope_set *ret_scope, const char **ret_allow);
