/* The entry from both listeners, and what each has besides the API (mounts.c). */
#include "api/service.h"
#include "access_log_internal.h"
#include "browser_internal.h"
#include "console/console.h"
#include "exchange_internal.h"
#include "guard_internal.h"
#include "handlers_internal.h"
#include "mounts_internal.h"
#include "route_guess_internal.h"

static void show_page(struct exchange *exchange)
{
    console_answer(exchange->service->console, exchange->request);
}

/* clang-format off */
static const struct mount PAGES[] = {
    {TEXT("/console"),                    show_page,            WHO_ANYONE,  MOUNT_BELOW},
    {TEXT("/docs"),                       show_page,            WHO_ANYONE,  MOUNT_BELOW},
    {TEXT("/openapi.json"),               show_page,            WHO_ANYONE,  0},
    {TEXT("/livez"),                      liveness_probe,       WHO_ANYONE,  MOUNT_READ},
    {TEXT("/readyz"),                     readiness_probe,      WHO_ANYONE,  MOUNT_READ},
    {TEXT("/"),                           show_page,            WHO_ANYONE,  0},
};
static const struct mount INTERNAL[] = {
    {TEXT("/check/auth-request"),         check_auth_request,  WHO_ANYONE,  0},
    {TEXT("/check/forward-auth"),         check_forward_auth,  WHO_ANYONE,  0},
    {TEXT("/check/ext-authz"),            check_ext_authz,     WHO_ANYONE,  MOUNT_BELOW},
    {TEXT("/check/verify"),               ask_enter,           WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_BODY},
    {TEXT("/check/batch"),                ask_enter,           WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_BODY},
    {TEXT("/check/introspect"),           ask_enter,           WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_BODY},
    {TEXT("/check/watch"),                watch_begin,         WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_READ},
    {TEXT("/check/watch/acknowledge"),    watch_acknowledge,   WHO_ANYONE,  MOUNT_NO_BROWSER},
    {TEXT("/check"),                      check_nothing,       WHO_ANYONE,  MOUNT_BELOW},
    {TEXT("/.well-known/oauth-authorization-server"), oauth_metadata_show, WHO_ANYONE, MOUNT_NO_BROWSER | MOUNT_READ},
    {TEXT("/.well-known/jwks.json"),      jwks_show,           WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_READ},
    {TEXT("/livez"),                      liveness_show,       WHO_ANYONE,  MOUNT_READ},
    {TEXT("/readyz"),                     readiness_show,      WHO_ANYONE,  MOUNT_READ},
    {TEXT("/metrics"),                    metrics_show,        WHO_ANYONE,  MOUNT_NO_BROWSER | MOUNT_READ},
};
/* clang-format on */

const struct mount *mount_of_page(struct text path)
{
    return mount_find(PAGES, sizeof PAGES / sizeof *PAGES, path);
}

const struct mount *mount_of_internal(struct text path)
{
    return mount_find(INTERNAL, sizeof INTERNAL / sizeof *INTERNAL, path);
}

static struct exchange *exchange_create(struct http_request *request, struct service *service, bool is_internal)
{
    struct exchange *exchange = http_request_alloc(request, sizeof *exchange);

    exchange->request = request;
    exchange->service = service;
    exchange->method = http_request_method(request);
    exchange->path = http_request_path(request);
    exchange->is_internal = is_internal;
    access_log_begin(exchange);
    return exchange;
}

/* True if it has been refused. */
static bool is_kept_out(struct exchange *exchange)
{
    unsigned flags = exchange->mount->flags;

    if ((flags & MOUNT_NO_BROWSER) && browser_is_refused(exchange))
        return true;
    if (!(flags & MOUNT_READ) || http_method_is_read(exchange->method))
        return false;
    exchange_refuse_method(exchange, "GET, HEAD");
    return true;
}

static inline void enter(struct exchange *exchange)
{
    const struct mount *mount = exchange->mount;

    if (!mount && !exchange->is_internal)
        exchange_refuse_with(exchange, route_guess(exchange->method, exchange->path));
    else if (!mount)
        exchange_refuse(exchange, PROBLEM_NOT_FOUND);
    else if (!(mount->flags & (MOUNT_NO_BROWSER | MOUNT_READ)) || !is_kept_out(exchange))
        mount->enter(exchange);
}

static void enter_api(struct exchange *exchange)
{
    if (!exchange_read_path(exchange, exchange->path)) {
        exchange_refuse(exchange, PROBLEM_BAD_REQUEST);
        return;
    }
    exchange->mount = mount_of_api(exchange->path);
    enter(exchange);
}

/* No page lies below /v1/, where nearly all requests go. */
static const struct mount *find_page(struct text path)
{
    return text_starts_with(path, TEXT("/v1/")) ? NULL : mount_of_page(path);
}

/* Orchestrators and balancers probe without a certificate, and while the node drains. The two answers tell nothing that
 * a refused connection would not. */
static bool is_probe(struct text path)
{
    return text_equal(path, TEXT("/livez")) || text_equal(path, TEXT("/readyz"));
}

void api_handle_public(struct http_request *request, void *service)
{
    struct exchange *exchange = exchange_create(request, service, false);

    /* Requests that have begun finish; new ones can go to other nodes. */
    if (exchange->service->refuses_new && !is_probe(exchange->path)) {
        exchange->match = route_find(exchange->method, exchange->path); /* for the form of the refusal */
        exchange_refuse(exchange, PROBLEM_SHUTTING_DOWN);
    } else if ((exchange->mount = find_page(exchange->path))) {
        enter(exchange);
    } else {
        enter_api(exchange);
    }
}

void api_handle_internal(struct http_request *request, void *service)
{
    struct exchange *exchange = exchange_create(request, service, true);

    exchange->mount = mount_of_internal(exchange->path);
    /* No check reads a body. A gateway may announce its client's body without sending it (nginx does by default), and
     * the next request on the connection would be read as that body. So the connection is closed. */
    if (http_request_has_body(request) && !(exchange->mount && exchange->mount->flags & MOUNT_BODY))
        http_response_close(request);
    if (exchange->service->needs_client_certificate && !http_request_has_client_certificate(request) &&
        !is_probe(exchange->path)) {
        exchange_refuse(exchange, PROBLEM_CLIENT_CERTIFICATE_REQUIRED);
    } else {
        enter(exchange);
    }
}

void api_print_error(struct http_request *request, enum http_error error, void *service)
{
    const struct text origin = ((const struct service *)service)->public_origin;
    struct problem problem = problem_of(problem_code_of(error));
    const struct route *row = route_find(HTTP_POST, http_request_path(request)).sibling;

    problem.is_oauth = row && row->flags & ROUTE_OAUTH;
    if (error == HTTP_ERROR_BAD_REQUEST)
        problem_blame_authorization(&problem, request);
    problem_reply(request, origin, &problem);
}

void api_print_internal_error(struct http_request *request, enum http_error error, void *service)
{
    struct problem problem = problem_of(problem_code_of(error));

    const struct mount *mount = mount_of_internal(http_request_path(request));

    if (error == HTTP_ERROR_BAD_REQUEST)
        problem_blame_authorization(&problem, request);
    if (!mount || !(mount->flags & MOUNT_BODY))
        check_mark_refusal(request, &problem, service);
    problem_reply(request, ((const struct service *)service)->public_origin, &problem);
}
