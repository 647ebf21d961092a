/* The ladder: one way in for every request of the public listener, and for every request that a gateway asks about, in
 * the order of checks of api.md 1. What lets a request pass is said by its row of the route table, or by the route
 * policy where the path is not ours. */
#include "api/service.h"
#include "auth/bearer.h"
#include "base/check.h"
#include "base/metrics.h"
#include "call_internal.h"
#include "core/limits.h"
#include "core/path.h"
#include "guard_internal.h"
#include "http/cookie.h"

#include <string.h>

static void authenticate(struct call *call, enum route_who who);
static void authenticate_key(struct call *call);
static void key_was_checked(void *arg, enum key_check_result result, const struct key_record *key);
static void authenticate_session(struct call *call);
static void load_session(struct call *call);
static void session_loaded(void *arg, enum store_result result, const struct session_record *session);
static void find_route(struct call *call);
static void authorise_foreign(struct call *call);
static void authorise_row(struct call *call);
static void answer(struct call *call);
static void enter(struct call *call);
static void body_read(void *arg, enum http_body_result result, struct text body);

/* The path */

/* Nearly every path is in its normal form already: the server has refused all bytes that are never right. */
static bool is_normal(struct text path)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];

        if (c == '%' || (c == '/' && i + 1 < path.len && (path.ptr[i + 1] == '/' || path.ptr[i + 1] == '.')))
            return false;
    }
    return true;
}

bool guard_read_path(struct call *call, struct text path)
{
    char *normal;

    call->path = path;
    if (is_normal(path))
        return true;
    normal = http_request_alloc(call->request, path.len + 1);
    if (!path_normalise(path, normal, &call->path.len))
        return false;
    call->path.ptr = normal;
    return true;
}

bool guard_path_lies_under(struct text path, struct text folder)
{
    return text_starts_with(path, folder) && (path.len == folder.len || path.ptr[folder.len] == '/');
}

void api_handle_public(struct http_request *request, void *arg)
{
    struct call *call = http_request_alloc(request, sizeof *call);

    call->request = request;
    call->service = arg;
    call->method = http_request_method(request);
    call->admit = answer;
    /* What was begun before is finished; what begins now has other nodes. */
    if (call->service->draining)
        call_refuse(call, PROBLEM_SHUTTING_DOWN);
    else if (!guard_read_path(call, http_request_path(request)))
        call_refuse(call, PROBLEM_BAD_REQUEST);
    else
        guard_judge(call);
}

void guard_judge(struct call *call)
{
    call->match = route_find(call->method, call->path);
    if (guard_path_lies_under(call->path, TEXT("/v1/console"))) {
        call->session_realm = true;
        authenticate(call, WHO_SESSION);
    } else if (guard_path_lies_under(call->path, TEXT("/v1/auth"))) {
        call->session_realm = true;
        authenticate(call, call->match.sibling ? call->match.sibling->who : WHO_ANYONE);
    } else if (guard_path_lies_under(call->path, TEXT("/v1"))) {
        authenticate(call, WHO_API_KEY);
    } else if (call->match.sibling) {
        authenticate(call, call->match.sibling->who);
    } else {
        call_refuse(call, PROBLEM_NOT_FOUND);
    }
}

/* The credential: 401 */

static enum bearer_result read_bearer(struct call *call, struct text *ret_token)
{
    size_t count;
    struct text header = http_request_header(call->request, TEXT("Authorization"), &count);

    return count ? bearer_read(header, ret_token) : BEARER_ABSENT;
}

/* An empty variable after "Bearer" is the commonest mistake of all. */
static void refuse_malformed_bearer(struct call *call)
{
    struct problem problem = problem_of(PROBLEM_BAD_REQUEST);
    size_t count;
    struct text header = http_request_header(call->request, TEXT("Authorization"), &count);

    if (text_equal_nocase(text_trim(header), TEXT("Bearer")))
        problem.message = "Authorization has no token after Bearer.";
    call_refuse_with(call, problem);
}

static enum cookie_result read_session_cookie(struct call *call, struct text *ret_token)
{
    size_t count;
    struct text header = http_request_header(call->request, TEXT("Cookie"), &count);

    return count ? cookie_find(header, SESSION_COOKIE_NAME, ret_token) : COOKIE_ABSENT;
}

static void authenticate(struct call *call, enum route_who who)
{
    struct text token;

    switch (who) {
    case WHO_API_KEY:
        authenticate_key(call);
        break;
    case WHO_SESSION:
        authenticate_session(call);
        break;
    case WHO_ANYONE:
        if (read_bearer(call, &token) == BEARER_MALFORMED)
            refuse_malformed_bearer(call);
        else
            find_route(call);
        break;
    }
}

static void refuse_key(struct call *call, enum key_check_result result, const struct key_record *key)
{
    static const enum metric REFUSALS[] = {
        [KEY_CHECK_INVALID] = METRIC_CHECK_INVALID,
        [KEY_CHECK_REVOKED] = METRIC_CHECK_REVOKED,
        [KEY_CHECK_UNAVAILABLE] = METRIC_CHECK_UNAVAILABLE,
    };

    metric_add(REFUSALS[result], 1);
    call->refused_key = key;
    call_refuse(call, key_check_problem(result, key));
    call->refused_key = NULL;
}

static void key_was_checked(void *arg, enum key_check_result result, const struct key_record *key)
{
    struct call *call = arg;
    struct key_record *principal;

    if (result == KEY_CHECK_ACCEPTED) {
        principal = http_request_alloc(call->request, key_bytes(key)); /* all of it is wiped */
        key_copy(principal, key);
        call->key = principal;
        find_route(call);
    } else {
        refuse_key(call, result, key);
    }
    http_request_release(call->request);
}

static void authenticate_key(struct call *call)
{
    struct text token;

    switch (read_bearer(call, &token)) {
    case BEARER_TOKEN:
        http_request_hold(call->request);
        key_check_begin(call->service->checker, &call->check, token, key_was_checked, call);
        break;
    case BEARER_MALFORMED:
        refuse_malformed_bearer(call);
        break;
    case BEARER_ABSENT:
    case BEARER_OTHER:
        call_refuse(call, read_session_cookie(call, &token) == COOKIE_ABSENT ? PROBLEM_MISSING_CREDENTIALS
                                                                             : PROBLEM_SESSION_NOT_ACCEPTED);
        break;
    }
}

static void authenticate_session(struct call *call)
{
    const struct service *service = call->service;
    enum bearer_result bearer;
    struct text token;

    bearer = read_bearer(call, &token);
    if (bearer == BEARER_MALFORMED) {
        refuse_malformed_bearer(call);
        return;
    }
    if (bearer == BEARER_TOKEN) {
        call_refuse(call, PROBLEM_BEARER_NOT_ACCEPTED);
        return;
    }
    call->session_digests = http_request_alloc(call->request, sizeof *call->session_digests);
    if (read_session_cookie(call, &token) != COOKIE_ONE ||
        !token_digests(service->keyring, KEYRING_SESSION_DIGEST, token, call->session_digests)) {
        call_refuse(call, PROBLEM_INVALID_SESSION);
        return;
    }
    http_request_hold(call->request);
    load_session(call);
}

/* By its digest under the current master key, and then under each retired one. */
static void load_session(struct call *call)
{
    const struct service *service = call->service;

    memcpy(call->session_digest, call->session_digests->of[call->session_tries++], sizeof call->session_digest);
    session_store_load(service->store, call->session_digest, &service->session_limits, session_loaded, call);
}

static void session_loaded(void *arg, enum store_result result, const struct session_record *session)
{
    struct call *call = arg;
    struct session_record *principal;

    if (result == STORE_NOT_FOUND && call->session_tries < call->session_digests->count) {
        load_session(call);
        return;
    }
    if (result == STORE_OK) {
        principal = http_request_alloc(call->request, sizeof *principal);
        *principal = *session;
        call->session = principal;
        find_route(call);
    } else if (result == STORE_NOT_FOUND) {
        call_refuse(call, PROBLEM_INVALID_SESSION);
    } else {
        call_refuse_store(call, result);
    }
    http_request_release(call->request);
}

/* Route and method: 404, 405 */

static void find_route(struct call *call)
{
    char storage[64];
    struct buf allow;

    if (call->match.route) {
        authorise_row(call);
    } else if (call->match.sibling) {
        buf_init_fixed(&allow, storage, sizeof storage);
        route_print_allow(call->match.sibling, &allow);
        call_refuse_method(call, http_request_copy(call->request, buf_text(&allow)).ptr);
    } else if (call->key || guard_path_lies_under(call->path, TEXT("/v1/console"))) {
        authorise_foreign(call);
    } else {
        call_refuse(call, PROBLEM_NOT_FOUND);
    }
}

/* Permission: 403 */

static void refuse_scope(struct call *call, scope_set required)
{
    struct problem problem = problem_of(PROBLEM_INSUFFICIENT_SCOPE);

    problem.required_scopes = required;
    problem.has_required_scopes = true;
    metric_add(METRIC_CHECK_FORBIDDEN, 1);
    call_refuse_with(call, problem);
}

/* One accepted check: the key's use is counted, whatever its handler answers. */
static void count_use(struct call *call)
{
    metric_add(METRIC_CHECK_ACCEPTED, 1);
    usage_count(call->service->usage, call->key, http_request_wall_ms(call->request));
}

static bool origin_is_ours(struct call *call)
{
    size_t count;
    struct text origin = http_request_header(call->request, TEXT("Origin"), &count);

    return count <= 1 && csrf_origin_matches(origin, count > 0, call->service->public_origin);
}

static bool csrf_token_is_right(struct call *call)
{
    size_t count;
    struct text token = http_request_header(call->request, TEXT("X-CSRF-Token"), &count);

    return count == 1 && csrf_token_matches(call->service->keyring, call->session->sid, token);
}

static void admit_key(struct call *call, scope_set scope)
{
    if (!scope_includes(call->key->scopes, scope)) {
        refuse_scope(call, scope);
        return;
    }
    count_use(call);
    call->admit(call);
}

/* flags: ROUTE_CSRF, ROUTE_ORIGIN, ROUTE_STEP_UP. Also for anyone, of whom no row asks but the Origin. */
static void admit_person(struct call *call, unsigned flags)
{
    if ((flags & (ROUTE_CSRF | ROUTE_ORIGIN)) && !origin_is_ours(call))
        call_refuse(call, PROBLEM_CSRF_FAILED);
    else if ((flags & ROUTE_CSRF) && !csrf_token_is_right(call))
        call_refuse(call, PROBLEM_CSRF_FAILED);
    else if ((flags & ROUTE_STEP_UP) && call->session->step_up_expires_ms == 0)
        call_refuse(call, PROBLEM_STEP_UP_REQUIRED);
    else
        call->admit(call);
}

static void authorise_row(struct call *call)
{
    const struct route *route = call->match.route;

    CHECK((route->who == WHO_API_KEY) == (call->key != NULL));
    CHECK((route->who == WHO_SESSION) == (call->session != NULL));
    if (!call->key)
        admit_person(call, route->flags);
    else if (call->key->kind != KEY_API) /* device keys write documents, which is another backend's route */
        refuse_scope(call, route->scope);
    else
        admit_key(call, route->scope);
}

static void refuse_everybody(struct call *call)
{
    struct problem problem = problem_of(PROBLEM_INSUFFICIENT_SCOPE);

    if (call->key) {
        refuse_scope(call, SCOPE_NONE);
        return;
    }
    problem.message = "No session may do this.";
    problem.has_required_scopes = true; /* none would do */
    call_refuse_with(call, problem);
}

/* A route of another backend, of which the policy knows. What it says for a session lies under /v1/console and what it
 * says for a key does not, so that each principal meets only verdicts of its own kind. */
static void authorise_foreign(struct call *call)
{
    bool is_read = call->method == HTTP_GET || call->method == HTTP_HEAD;
    unsigned csrf = is_read ? 0 : ROUTE_CSRF;
    const char *allow = NULL;
    scope_set scope = SCOPE_NONE;

    switch (route_policy_find(call->service->policy, call->path, is_read, &scope, &allow)) {
    case POLICY_UNKNOWN:
        call_refuse(call, PROBLEM_NOT_FOUND);
        break;
    case POLICY_METHOD:
        call_refuse_method(call, allow);
        break;
    case POLICY_DENY:
        refuse_everybody(call);
        break;
    case POLICY_SCOPE:
        CHECK(call->key);
        admit_key(call, scope);
        break;
    case POLICY_SESSION:
        CHECK(call->session);
        admit_person(call, csrf);
        break;
    case POLICY_STEP_UP:
        CHECK(call->session);
        admit_person(call, csrf | ROUTE_STEP_UP);
        break;
    }
}

/* On the public listener: our own routes are answered, and behind others there is no backend, so that what is allowed
 * there is not found. */
static void answer(struct call *call)
{
    if (call->match.route)
        enter(call);
    else
        call_refuse(call, PROBLEM_NOT_FOUND);
}

/* Body and parameters: 415, 400 */

/* The type, at most with "charset=utf-8" (RFC 9110 section 8.3.1). */
static bool is_type(struct text value, struct text type)
{
    struct text part;

    if (!text_next(&value, ';', &part) || !text_equal_nocase(text_trim(part), type))
        return false;
    while (text_next(&value, ';', &part)) {
        part = text_trim(part);
        if (part.len && !text_equal_nocase(part, TEXT("charset=utf-8")) &&
            !text_equal_nocase(part, TEXT("charset=\"utf-8\"")))
            return false;
    }
    return true;
}

/* Without a body there is nothing to name a type of; a wrong name is refused all the same. */
static bool content_type_fits(struct call *call)
{
    size_t count;
    struct text type = http_request_header(call->request, TEXT("Content-Type"), &count);
    bool is_form = call->match.route->flags & ROUTE_FORM;

    if (count == 0)
        return !http_request_has_body(call->request);
    return is_type(type, is_form ? TEXT("application/x-www-form-urlencoded") : TEXT("application/json"));
}

static void refuse_type(struct call *call)
{
    struct problem problem = problem_of(PROBLEM_UNSUPPORTED_MEDIA_TYPE);

    if (call->match.route->flags & ROUTE_FORM)
        problem.message = "Send the body as application/x-www-form-urlencoded.";
    call_refuse_with(call, problem);
}

/* No coding of a body is decoded here (RFC 9110 section 15.5.16). */
static bool refuse_coding(struct call *call)
{
    struct problem problem = problem_of(PROBLEM_UNSUPPORTED_MEDIA_TYPE);
    size_t count;

    http_request_header(call->request, TEXT("Content-Encoding"), &count);
    if (count == 0)
        return false;
    problem.message = "Send the body without a Content-Encoding.";
    http_response_header(call->request, TEXT("Accept-Encoding"), TEXT("identity"));
    call_refuse_with(call, problem);
    return true;
}

/* Memory is lent to strangers in small pieces. */
static bool refuse_size(struct call *call)
{
    if (call->match.route->who != WHO_ANYONE || http_request_limit_body(call->request, STRANGER_BODY_MAX_BYTES))
        return false;
    http_response_close(call->request);
    call_refuse(call, PROBLEM_BODY_TOO_LARGE);
    return true;
}

static void enter(struct call *call)
{
    const struct route *route = call->match.route;
    bool takes_body = route->flags & (ROUTE_JSON | ROUTE_FORM);

    if (http_request_has_body(call->request) && (refuse_coding(call) || refuse_size(call)))
        return;
    if ((takes_body || http_request_has_body(call->request)) && !content_type_fits(call)) {
        refuse_type(call);
        return;
    }
    if (!(route->flags & ROUTE_QUERY) && !call_read_query(call, query_read_nothing, NULL))
        return;
    if (!takes_body)
        route->handle(call);
    else if (http_request_has_body(call->request))
        http_request_read_body(call->request, body_read, call);
    else if (route->flags & ROUTE_FORM)
        route->handle(call);
    else
        call_refuse(call, PROBLEM_INVALID_JSON);
}

static void body_free(void *body)
{
    json_free(body);
}

static void refuse_json(struct call *call, const char *why)
{
    char storage[192];
    struct buf message;
    struct problem problem = problem_of(PROBLEM_INVALID_JSON);

    buf_init_fixed(&message, storage, sizeof storage);
    buf_printf(&message, "The body is not one valid JSON object: %s.", why);
    problem.message = http_request_copy(call->request, buf_text(&message)).ptr;
    call_refuse_with(call, problem);
}

static void body_read(void *arg, enum http_body_result result, struct text body)
{
    struct call *call = arg;
    struct json *document;
    const char *why;

    if (result != HTTP_BODY_OK)
        return;
    if (call->match.route->flags & ROUTE_FORM) {
        call->form = body;
        call->match.route->handle(call);
        return;
    }
    document = json_parse_object(body, &why);
    if (!document) {
        refuse_json(call, why);
        return;
    }
    http_request_defer(call->request, body_free, document);
    call->body = document;
    call->match.route->handle(call);
}
