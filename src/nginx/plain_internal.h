/* Which requests the module decides by itself. It asks a node about all others, so nothing here refuses anything. */
#pragma once
#include "base/text.h"
#include "core/scope.h"
#include "core/trace_context.h"

enum plain_method { PLAIN_READ, PLAIN_WRITE, PLAIN_OTHER };

/* Whether a node certainly accepts a request's target and finds it under that row of its policy, and every server reads
 * it alike: unreserved characters and slashes, no empty segment, none that begins or ends with a dot. The query does
 * not matter to nodes. Rows as plain_is_row() accepts them. */
bool plain_target(struct text target, struct text row);
/* Whether a path can be a row for keys: plain, below /v1/ and not /v1/console, without a slash at its end. */
bool plain_is_row(struct text path);
/* As nodes divide methods; those that a policy does not speak of are OTHER. */
enum plain_method plain_method(struct text method);
/* What a node answers in traceparent to the client's; false: nothing. */
MUST_CHECK bool plain_trace(struct text traceparent, char ret_text[TRACEPARENT_CHARS]);
/* "none" is SCOPE_NONE. False: there is no such scope. */
MUST_CHECK bool plain_scope(struct text name, scope_set *ret_scope);
/* Whether a client's header of that name, in lower case, could tell a backend something that only a gateway may say:
 * who the client is, where it is, or what it asks for (docker/gateways/README.md#what-the-gateway-must-ensure). An
 * underscore counts as a hyphen. */
bool plain_steers(struct text name);
