#include "check_internal.h"
#include "core/path.h"
#include "guard_internal.h"

#define EXT_AUTHZ "/check/ext-authz"

/* Which request is meant. Gateways copy their client's headers, so that a client can send the headers of another
 * gateway: each route reads one pair and no other. */
static const struct gateway {
    struct text path, method_header, target_header;
} GATEWAYS[] = {
    {TEXT("/check/auth-request"), TEXT("X-Original-Method"), TEXT("X-Original-URI")},
    {TEXT("/check/forward-auth"), TEXT("X-Forwarded-Method"), TEXT("X-Forwarded-Uri")},
};

static void allow(struct exchange *exchange);

static enum problem_code read_headers(struct exchange *exchange, const struct gateway *gateway, struct text *ret_path)
{
    size_t methods, targets;
    struct text method = http_request_header(exchange->request, gateway->method_header, &methods);
    struct text target = http_request_header(exchange->request, gateway->target_header, &targets);
    struct text query;

    if (methods != 1 || targets != 1 || method.len == 0 || !http_target_is_sound(target))
        return PROBLEM_BAD_REQUEST;
    if (target.len > exchange->service->target_max_bytes)
        return PROBLEM_URI_TOO_LONG;
    path_split_query(target, ret_path, &query);
    return http_method_read(method, &exchange->method) ? PROBLEM_NONE : PROBLEM_NOT_IMPLEMENTED;
}

/* The prefix is cut off what was sent, before anything is normalised. */
static enum problem_code read_request_line(struct exchange *exchange, struct text *ret_path)
{
    struct text path = http_request_path(exchange->request), query = http_request_query(exchange->request);
    size_t query_bytes = query.ptr ? query.len + 1 : 0;

    *ret_path = text_skip(path, TEXT(EXT_AUTHZ).len);
    exchange->method = http_request_method(exchange->request);
    return ret_path->len + query_bytes > exchange->service->target_max_bytes ? PROBLEM_URI_TOO_LONG : PROBLEM_NONE;
}

static void judge(struct exchange *exchange, struct text path)
{
    bool has_policy;

    /* The backend gets the path as it was sent: one that others may read otherwise than we do is refused. */
    if (!guard_read_path(exchange, path) || !path_is_unambiguous(path)) {
        exchange_refuse(exchange, PROBLEM_BAD_REQUEST);
        return;
    }
    /* For these there is nothing to tunnel and nothing to echo anywhere. */
    if (exchange->method == HTTP_CONNECT || exchange->method == HTTP_TRACE) {
        exchange_refuse_method(exchange, HTTP_METHODS_ALLOWED);
        return;
    }
    has_policy =
        guard_path_lies_under(exchange->path, TEXT("/v1")) && !guard_path_lies_under(exchange->path, TEXT("/v1/auth"));
    if (has_policy)
        guard_judge(exchange);
    else
        exchange_refuse(exchange, PROBLEM_NOT_FOUND);
}

static void check_by_headers(struct exchange *exchange, const struct gateway *gateway)
{
    struct text path;
    enum problem_code code;

    if (exchange->method != HTTP_GET && exchange->method != HTTP_HEAD) {
        exchange_refuse_method(exchange, "GET, HEAD");
        return;
    }
    code = read_headers(exchange, gateway, &path);
    if (code == PROBLEM_NONE)
        judge(exchange, path);
    else
        exchange_refuse(exchange, code);
}

static void check_by_request_line(struct exchange *exchange)
{
    struct text path;
    enum problem_code code = read_request_line(exchange, &path);

    if (code == PROBLEM_NONE)
        judge(exchange, path);
    else
        exchange_refuse(exchange, code);
}

void check_handle(struct http_request *request, struct service *service)
{
    struct exchange *exchange = http_request_alloc(request, sizeof *exchange);
    struct text path = http_request_path(request);

    exchange->request = request;
    exchange->service = service;
    exchange->method = http_request_method(request);
    exchange->is_check = true;
    exchange->admit = allow;
    /* Gateways ask the next node. */
    if (service->draining) {
        exchange_refuse(exchange, PROBLEM_SHUTTING_DOWN);
        return;
    }
    if (text_starts_with(path, TEXT(EXT_AUTHZ "/"))) {
        check_by_request_line(exchange);
        return;
    }
    for (size_t i = 0; i < sizeof GATEWAYS / sizeof *GATEWAYS; i++)
        if (text_equal(path, GATEWAYS[i].path)) {
            check_by_headers(exchange, &GATEWAYS[i]);
            return;
        }
    exchange_refuse(exchange, PROBLEM_NOT_FOUND);
}

/* Nothing of this comes from the request: a client's own X-Auth-* never come back. */
static void allow(struct exchange *exchange)
{
    enum { SCOPES_MAX_BYTES = 256 };
    struct http_request *request = exchange->request;
    const struct key_record *key = exchange->key;
    char storage[SCOPES_MAX_BYTES];
    struct buf scopes;

    buf_init_fixed(&scopes, storage, sizeof storage);
    if (key)
        scope_print(key->scopes, ' ', &scopes);
    http_response_header(request, TEXT("X-Auth-Account"), id_text(exchange_account(exchange)));
    http_response_header(request, TEXT("X-Auth-Principal"), id_text(exchange_actor(exchange)));
    http_response_header(request, TEXT("X-Auth-Kind"), key ? key_kind_text(key->kind) : TEXT("session"));
    if (key)
        http_response_header(request, TEXT("X-Auth-Mode"), key_mode_text(key->mode));
    http_response_header(request, TEXT("X-Auth-Scopes"), buf_text(&scopes));
    http_response_header(request, TEXT("X-Auth-Billable"),
                         key && key->mode == MODE_LIVE ? TEXT("true") : TEXT("false"));
    http_reply(request, 200, (struct text){0}, (struct text){0});
}

void check_mark_refusal(struct http_request *request, const struct service *service, struct problem *problem)
{
    int status = problem_status(problem->code);

    http_response_header(request, TEXT("X-Auth-Error"), text_of(problem_code_text(problem->code)));
    if (service->strict401 && status != 401 && status != 500 && status != 503)
        problem->status = 403;
}

void api_mark_internal_refusal(struct http_request *request, struct problem *problem, void *arg)
{
    check_mark_refusal(request, arg, problem);
}
