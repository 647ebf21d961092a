/* What the files of nginx's module share. Names follow nginx: NGX_OK, r, cf. */
#pragma once
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/text.h"
#include "core/scope.h"

#include <stdint.h>

enum variable {
    VARIABLE_ACCOUNT,
    VARIABLE_PRINCIPAL,
    VARIABLE_KIND,
    VARIABLE_MODE,
    VARIABLE_ROLE,
    VARIABLE_SCOPES,
    VARIABLE_BILLABLE,
    VARIABLE_REQUEST_ID,
    VARIABLE_TOLD_COUNT, /* a backend is told those before */
    VARIABLE_ERROR = VARIABLE_TOLD_COUNT,
    VARIABLE_TRACEPARENT,
    VARIABLE_CHALLENGE,
    VARIABLE_ALLOW,
    VARIABLE_RETRY_AFTER,
    VARIABLE_TRANSPORT,
    VARIABLE_STATUS,
    VARIABLE_FROM,
    VARIABLE_COUNT,
};

struct variable_name {
    ngx_str_t name, header; /* header: of the node's response, in lower case; empty: it has none */
};

extern const struct variable_name module_variables[VARIABLE_COUNT];
extern ngx_module_t ngx_http_chatelaine_module;

struct main_conf {
    ngx_str_t path;       /* empty: no table */
    ngx_str_t deployment; /* NUL-terminated; empty: any */
    uid_t owner;
    /* The node's policy that the scopes of this configuration are meant for: the first one that any of its workers has
     * seen; 0: none yet. In memory that the master makes, so that a worker that is started again has the same. */
    _Atomic uint32_t *policy;
    ngx_int_t index_of[VARIABLE_COUNT];
    ngx_array_t places; /* struct noted_place; until the configuration is read */
};

struct location_conf {
    ngx_str_t uri;         /* data NULL: not said; empty: off */
    ngx_str_t row;         /* of the policy; data NULL: no scope was said */
    scope_set read, write; /* SCOPE_NONE: ask a node */
    /* The location that the URI names, once the configuration is read. */
    struct location_conf *target;
    /* Of a target, in each worker: a node has refused a check without a credential there; it was told that somebody
     * has not. */
    bool is_proven, has_told;
};

static inline struct text module_text(ngx_str_t str)
{
    return (struct text){(const char *)str.data, str.len};
}

/* What is known of a main request. Stays through internal redirects, and as long as the request. */
struct checked_request {
    ngx_http_headers_in_t sent;     /* what its client may say, with its credentials */
    const struct location_conf *by; /* the last location whose check has allowed it; NULL: none */
};

/* --- table: a worker's table of keys --- */

ngx_int_t table_begin(ngx_cycle_t *cycle);
void table_end(ngx_cycle_t *cycle);
/* Whether the table accepts the request, which counts as a use of its key. All that can fail comes before that. values:
 * of the variables, empty before; data NULL: unknown. */
bool table_accepts(ngx_http_request_t *r, const ngx_http_headers_in_t *sent, const struct location_conf *location,
                   ngx_str_t values[VARIABLE_COUNT]);

/* --- headers: what others may not say --- */

/* The request's record, which is made when it is asked for first: then the headers are removed that no client may send.
 * NULL: no memory. */
struct checked_request *headers_checked(ngx_http_request_t *r);
/* Whether it has a record. */
bool headers_are_clean(const ngx_http_request_t *r);
/* Gives a request that is allowed the headers for its backend, and takes the credentials away. */
ngx_int_t headers_tell(ngx_http_request_t *r, const struct checked_request *checked,
                       const ngx_str_t values[VARIABLE_COUNT]);

/* --- check: asks nodes --- */

/* The handler of the access phase, and the one before content is made. */
ngx_int_t check_access(ngx_http_request_t *r);
ngx_int_t check_content(ngx_http_request_t *r);
