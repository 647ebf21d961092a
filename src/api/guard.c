/* The guard: the only way in for every request of the public listener and every request that a gateway asks about. The
 * order of its checks is in src/api/README.md#errors. The route table says what a request needs; for paths that are not
 * ours, the route policy does. */
#include "api/service.h"
#include "auth/bearer.h"
#include "base/check.h"
#include "base/histogram.h"
#include "base/metrics.h"
#include "entry_internal.h"
#include "exchange_client_internal.h"
#include "exchange_internal.h"
#include "guard_internal.h"
#include "handlers_internal.h"
#include "leaked_secret_internal.h"
#include "mounts_internal.h"
#include "open_row_internal.h"
#include "question_internal.h"
#include "route_guess_internal.h"
#include "session_cookie_internal.h"
#include "engine/alias.h"

#include <string.h>

static void admit_anybody(struct exchange *exchange);
static void authenticate(struct exchange *exchange, enum route_who who);
static void check_key(struct exchange *exchange, struct text token);
static void authenticate_key(struct exchange *exchange);
static void key_was_checked(void *arg, enum key_verdict verdict, const struct key_principal *key);
static void authenticate_session(struct exchange *exchange);
static void load_session(struct exchange *exchange);
static void session_loaded(void *arg, enum store_result result, const struct session_record *session);
static void find_route(struct exchange *exchange);
static void admit_key(struct exchange *exchange, scope_set scope, unsigned flags);
static void authorise_foreign(struct exchange *exchange);
static void authorise_row(struct exchange *exchange);
static void answer(struct exchange *exchange);

/* The public listener. */
void guard_enter(struct exchange *exchange)
{
    exchange->admit = answer;
    guard_begin(exchange);
}

/* The key is looked up whatever everybody may do: whether it is good is the question. */
static void judge(struct exchange *exchange, enum route_who who)
{
    if (who == WHO_SESSION)
        exchange_refuse(exchange, PROBLEM_BEARER_NOT_ACCEPTED);
    else
        check_key(exchange, exchange->question->key);
}

void guard_begin(struct exchange *exchange)
{
    enum route_who who;

    exchange->match = route_find(exchange->method, exchange->path);
    if (exchange->match.sibling && route_yields(exchange->match.sibling, exchange->service->policy))
        exchange->match = (struct route_match){0};
    who = exchange->match.sibling ? exchange->match.sibling->who : exchange->mount->who;
    if (exchange->question)
        judge(exchange, who);
    else if (!exchange->match.sibling && route_policy_has_open_rows(exchange->service->policy) &&
             open_row_admits(exchange))
        admit_anybody(exchange);
    else
        authenticate(exchange, who);
}

/* The credential: 401 */

static enum bearer_result read_bearer(struct exchange *exchange, struct text *ret_token)
{
    size_t count;
    struct text header = http_request_header(exchange->request, TEXT("Authorization"), &count);

    return count ? bearer_read(header, ret_token) : BEARER_ABSENT;
}

static void refuse_malformed_bearer(struct exchange *exchange)
{
    struct problem problem = problem_of(PROBLEM_BAD_REQUEST);

    problem_blame_authorization(&problem, exchange->request);
    exchange_refuse_with(exchange, problem);
}

/* The backend gets no identity, so the credential is not looked up. */
static void admit_anybody(struct exchange *exchange)
{
    struct text token;

    if (read_bearer(exchange, &token) == BEARER_MALFORMED) {
        refuse_malformed_bearer(exchange);
    } else {
        exchange->key = NULL;
        exchange->admit(exchange);
    }
}

static void authenticate(struct exchange *exchange, enum route_who who)
{
    struct text token;

    switch (who) {
    case WHO_API_KEY:
        authenticate_key(exchange);
        break;
    case WHO_SESSION:
        authenticate_session(exchange);
        break;
    case WHO_ANYONE:
        if (read_bearer(exchange, &token) == BEARER_MALFORMED)
            refuse_malformed_bearer(exchange);
        else
            find_route(exchange);
        break;
    }
}

enum check_result { CHECK_ACCEPTED, CHECK_INVALID, CHECK_REVOKED, CHECK_FORBIDDEN, CHECK_UNAVAILABLE };

static void note_check(const struct exchange *exchange, enum check_result result)
{
    static const struct {
        enum metric count;
        enum histogram_row duration;
    } METRICS[] = {
        [CHECK_ACCEPTED] = {METRIC_CHECK_ACCEPTED, HISTOGRAM_CHECK_ACCEPTED},
        [CHECK_INVALID] = {METRIC_CHECK_INVALID, HISTOGRAM_CHECK_INVALID},
        [CHECK_REVOKED] = {METRIC_CHECK_REVOKED, HISTOGRAM_CHECK_REVOKED},
        [CHECK_FORBIDDEN] = {METRIC_CHECK_FORBIDDEN, HISTOGRAM_CHECK_FORBIDDEN},
        [CHECK_UNAVAILABLE] = {METRIC_CHECK_UNAVAILABLE, HISTOGRAM_CHECK_UNAVAILABLE},
    };

    metric_add(METRICS[result].count, 1);
    histogram_observe(METRICS[result].duration, http_request_age_ns(exchange->request));
}

/* The other verdicts mean a known key that has ended. */
static enum check_result result_of(enum key_verdict verdict)
{
    if (verdict == KEY_INVALID)
        return CHECK_INVALID;
    if (verdict == KEY_SUSPENDED)
        return CHECK_FORBIDDEN;
    return verdict == KEY_UNDECIDED ? CHECK_UNAVAILABLE : CHECK_REVOKED;
}

static void refuse_key(struct exchange *exchange, enum key_verdict verdict, const struct key_principal *key)
{
    note_check(exchange, result_of(verdict));
    exchange->refused_key = key;
    exchange_refuse(exchange, problem_of_verdict(verdict, key ? key->kind : KEY_API));
    exchange->refused_key = NULL;
}

/* Copies the principal into the request's arena, followed by its name. */
static void keep_principal(struct exchange *exchange, const struct key_principal *key)
{
    struct key_principal *principal = http_request_alloc(exchange->request, sizeof *principal + key->name.len);
    char *name = (char *)(principal + 1);

    *principal = *key;
    memcpy(name, key->name.ptr, key->name.len);
    principal->name.ptr = name;
    exchange->key = principal;
}

static void key_was_checked(void *arg, enum key_verdict verdict, const struct key_principal *key)
{
    struct exchange *exchange = arg;

    if (verdict == KEY_ACCEPTED) {
        keep_principal(exchange, key);
        find_route(exchange);
    } else {
        refuse_key(exchange, verdict, key);
    }
    http_request_release(exchange->request);
}

static void check_key(struct exchange *exchange, struct text token)
{
    http_request_hold(exchange->request);
    key_check_begin(exchange->service->checker, &exchange->check, token, key_was_checked, exchange);
}

static void authenticate_key(struct exchange *exchange)
{
    struct text token;

    switch (read_bearer(exchange, &token)) {
    case BEARER_TOKEN:
        check_key(exchange, token);
        break;
    case BEARER_MALFORMED:
        refuse_malformed_bearer(exchange);
        break;
    case BEARER_ABSENT:
    case BEARER_OTHER:
        exchange_refuse_saying(exchange,
                               session_cookie_find(exchange, &token) == COOKIE_ABSENT ? PROBLEM_MISSING_CREDENTIALS
                                                                                      : PROBLEM_SESSION_NOT_ACCEPTED,
                               leaked_secret_hint(exchange));
        break;
    }
}

static void authenticate_session(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    enum bearer_result bearer;
    struct text token;

    bearer = read_bearer(exchange, &token);
    if (bearer == BEARER_MALFORMED) {
        refuse_malformed_bearer(exchange);
        return;
    }
    if (bearer == BEARER_TOKEN) {
        exchange_refuse(exchange, PROBLEM_BEARER_NOT_ACCEPTED);
        return;
    }
    exchange->session_digests = http_request_alloc(exchange->request, sizeof *exchange->session_digests);
    if (session_cookie_find(exchange, &token) != COOKIE_ONE ||
        !token_digests(service->keyring, KEYRING_SESSION_DIGEST, token, exchange->session_digests)) {
        exchange_refuse_saying(exchange, PROBLEM_INVALID_SESSION, leaked_secret_hint(exchange));
        return;
    }
    http_request_hold(exchange->request);
    load_session(exchange);
}

/* For the user's list of sessions. The peer of the internal listener is a gateway, whose address says nothing. */
static struct text address_of(const struct exchange *exchange)
{
    if (exchange->is_internal)
        return (struct text){0};
    return exchange_client_address(exchange);
}

static void load_session_in(struct exchange *exchange, struct store *store)
{
    session_store_load(store, exchange->session_digest, &exchange->service->session_limits, address_of(exchange),
                       session_loaded, exchange);
}

/* Tries the cookie's digest under the current master key, then under each retired one. */
static void load_session(struct exchange *exchange)
{
    const struct service *service = exchange->service;

    memcpy(exchange->session_digest, exchange->session_digests->of[exchange->session_tries++],
           sizeof exchange->session_digest);
    exchange->session_may_be_elsewhere = true;
    load_session_in(exchange, partition_of_digest(service->partitions, exchange->session_digest));
}

static void alias_followed(void *arg, enum store_result result, unsigned bucket)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        load_session_in(exchange, partition_of_bucket(exchange->service->partitions, bucket));
    else
        session_loaded(exchange, result, NULL);
}

/* A session from before sessions were drawn into the partition of their account. Once for each digest. */
static bool follow_alias(struct exchange *exchange)
{
    struct store *store = partition_of_digest(exchange->service->partitions, exchange->session_digest);

    if (!exchange->session_may_be_elsewhere || !store_has_aliases(store))
        return false;
    exchange->session_may_be_elsewhere = false;
    alias_find(store, exchange->session_digest, alias_followed, exchange);
    return true;
}

static void session_loaded(void *arg, enum store_result result, const struct session_record *session)
{
    struct exchange *exchange = arg;
    struct session_record *principal;

    if (result == STORE_NOT_FOUND && follow_alias(exchange))
        return;
    if (result == STORE_NOT_FOUND && exchange->session_tries < exchange->session_digests->count) {
        load_session(exchange);
        return;
    }
    if (result == STORE_OK) {
        principal = http_request_alloc(exchange->request, sizeof *principal);
        *principal = *session;
        exchange->session = principal;
        find_route(exchange);
    } else if (result == STORE_NOT_FOUND) {
        exchange_refuse(exchange, PROBLEM_INVALID_SESSION);
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}

/* Route and method: 404, 405 */

static void find_route(struct exchange *exchange)
{
    if (exchange->match.route) {
        authorise_row(exchange);
    } else if (exchange->match.sibling) {
        struct buf allow = BUF_FIXED(64);

        route_print_allow(exchange->match.sibling, &allow);
        exchange_refuse_method(exchange, http_request_copy(exchange->request, buf_text(&allow)).ptr);
    } else if (exchange->mount->flags & MOUNT_POLICY) {
        authorise_foreign(exchange);
    } else if (exchange->question) { /* about the key alone */
        admit_key(exchange, SCOPE_NONE, 0);
    } else {
        exchange_refuse_with(exchange, route_guess(exchange->method, exchange->path));
    }
}

/* Permission: 403 */

static const char *what_is_lacking(const struct exchange *exchange, scope_set required)
{
    enum { SCOPES_MAX_BYTES = 256 };
    char storage[2][SCOPES_MAX_BYTES];
    struct buf needs, has;

    if (required == SCOPE_NONE)
        return exchange->match.route ? "A device's key may not do this: use an API key."
                                     : "No key is allowed to do this.";
    buf_init_fixed(&needs, storage[0], SCOPES_MAX_BYTES);
    buf_init_fixed(&has, storage[1], SCOPES_MAX_BYTES);
    scope_print(required, ' ', &needs);
    scope_print(exchange->key->scopes, ' ', &has);
    return exchange_format(exchange, "This needs %.*s; the key has %.*s.", TEXT_ARG(buf_text(&needs)),
                           TEXT_ARG(buf_text(&has)));
}

static void refuse_scope(struct exchange *exchange, scope_set required)
{
    note_check(exchange, CHECK_FORBIDDEN);
    exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_INSUFFICIENT_SCOPE,
                                                    .message = what_is_lacking(exchange, required),
                                                    .required_scopes = required,
                                                    .has_required_scopes = true});
}

/* Counts one accepted check as a use of the key, whatever the handler answers. */
static void count_use(struct exchange *exchange)
{
    if (exchange->question && exchange->question->is_repeated)
        return;
    note_check(exchange, CHECK_ACCEPTED);
    usage_count(exchange->service->usage, exchange->key, 1, http_request_wall_ms(exchange->request));
}

static bool origin_is_ours(struct exchange *exchange)
{
    size_t count;
    struct text origin = http_request_header(exchange->request, TEXT("Origin"), &count);

    return count <= 1 && csrf_origin_matches(origin, count > 0, exchange->service->public_origin);
}

static bool csrf_token_is_right(struct exchange *exchange)
{
    size_t count;
    struct text token = http_request_header(exchange->request, TEXT("X-CSRF-Token"), &count);

    return count == 1 && csrf_token_matches(exchange->service->keyring, exchange->session->sid, token);
}

static void refuse_test_key(struct exchange *exchange)
{
    note_check(exchange, CHECK_FORBIDDEN);
    exchange_refuse_saying(exchange, PROBLEM_MODE_NOT_PERMITTED, "A test key may not do this: use a live key.");
}

static scope_set asked_scopes(const struct exchange *exchange)
{
    return exchange->question ? exchange->question->scopes : SCOPE_NONE;
}

/* flags: ROUTE_LIVE. Not left to handlers: a gateway that asks must hear the same. */
static void admit_key(struct exchange *exchange, scope_set scope, unsigned flags)
{
    if (!scope_includes(exchange->key->scopes, scope)) {
        refuse_scope(exchange, asked_scopes(exchange) | scope);
    } else if ((flags & ROUTE_LIVE) && exchange->key->mode != MODE_LIVE) {
        refuse_test_key(exchange);
    } else if (exchange->reply_refusal && http_request_given_up(exchange->request)) {
        exchange_refuse(exchange, PROBLEM_OVERLOADED); /* the gateway has asked another node meanwhile */
    } else if (exchange->question && !scope_includes(exchange->key->scopes, exchange->question->scopes)) {
        refuse_scope(exchange, exchange->question->scopes | scope);
    } else {
        count_use(exchange);
        exchange->admit(exchange);
    }
}

/* What a session lacks; PROBLEM_NONE: nothing. The role comes before the rest: nobody shall confirm a password only to
 * hear that it was in vain. */
static enum problem_code lack_of(const struct session_record *session, unsigned flags, enum role least_role)
{
    if (session->user.role < least_role)
        return PROBLEM_ROLE_NOT_PERMITTED;
    if (session->password_expired && !(flags & ROUTE_EXPIRED))
        return PROBLEM_PASSWORD_CHANGE_REQUIRED;
    if ((flags & ROUTE_STEP_UP) && session->step_up_expires_ms == 0)
        return PROBLEM_STEP_UP_REQUIRED;
    return PROBLEM_NONE;
}

/* flags: ROUTE_CSRF, ROUTE_ORIGIN, ROUTE_STEP_UP, ROUTE_EXPIRED. Also used for routes for anyone, whose rows check at
 * most the Origin. */
static void admit_person(struct exchange *exchange, unsigned flags, enum role least_role)
{
    enum problem_code lack = exchange->session ? lack_of(exchange->session, flags, least_role) : PROBLEM_NONE;

    if ((flags & (ROUTE_CSRF | ROUTE_ORIGIN)) && !origin_is_ours(exchange))
        exchange_refuse(exchange, PROBLEM_CSRF_FAILED);
    else if ((flags & ROUTE_CSRF) && !csrf_token_is_right(exchange))
        exchange_refuse(exchange, PROBLEM_CSRF_FAILED);
    else if (lack != PROBLEM_NONE)
        exchange_refuse(exchange, lack);
    else
        exchange->admit(exchange);
}

static void authorise_row(struct exchange *exchange)
{
    const struct route *route = exchange->match.route;

    CHECK((route->who == WHO_API_KEY) == (exchange->key != NULL));
    CHECK((route->who == WHO_SESSION) == (exchange->session != NULL));
    if (!exchange->key)
        admit_person(exchange, route->flags, route->least_role);
    else if (exchange->key->kind != KEY_API) /* device keys may only upload documents, which is a backend's route */
        refuse_scope(exchange, route->scope);
    else
        admit_key(exchange, route->scope, route->flags);
}

static void refuse_everybody(struct exchange *exchange)
{
    if (exchange->key)
        refuse_scope(exchange, SCOPE_NONE);
    else
        exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_INSUFFICIENT_SCOPE,
                                                        .message = "No session is allowed to do this.",
                                                        .has_required_scopes = true /* no scope would help */});
}

/* A backend's route, decided by the policy. Its rows for sessions are below /v1/console and its rows for keys are not,
 * so each principal meets only verdicts of its own kind. Every user may read; changing takes what creating keys takes.
 */
static void authorise_foreign(struct exchange *exchange)
{
    bool is_read = http_method_is_read(exchange->method);
    unsigned csrf = is_read ? 0 : ROUTE_CSRF;
    enum role least_role = is_read ? ROLE_AUDITOR : ROLE_DEVELOPER;
    const char *allow = NULL;
    scope_set scope = SCOPE_NONE;

    switch (route_policy_find(exchange->service->policy, exchange->path, is_read, &scope, &allow)) {
    case POLICY_UNKNOWN:
        exchange_refuse_with(exchange, route_guess(exchange->method, exchange->path));
        break;
    case POLICY_METHOD:
        exchange_refuse_method(exchange, allow);
        break;
    case POLICY_DENY:
        refuse_everybody(exchange);
        break;
    case POLICY_SCOPE:
        CHECK(exchange->key);
        admit_key(exchange, scope, 0);
        break;
    case POLICY_SESSION:
        CHECK(exchange->session);
        admit_person(exchange, csrf, least_role);
        break;
    case POLICY_STEP_UP:
        CHECK(exchange->session);
        admit_person(exchange, csrf | ROUTE_STEP_UP, least_role);
        break;
    case POLICY_PUBLIC: /* a question, or the policy was reloaded while the key was looked up */
        if (exchange->question)
            admit_key(exchange, SCOPE_NONE, 0);
        else
            admit_anybody(exchange);
        break;
    }
}

/* On the public listener, our own routes are answered. No backend is behind other paths, so an allowed request gets
 * 404. */
static void answer(struct exchange *exchange)
{
    if (exchange->match.route)
        entry_enter(exchange);
    else
        exchange_refuse_with(exchange, route_guess(exchange->method, exchange->path));
}
