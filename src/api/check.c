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

static void allow(struct call *call);

static enum problem_code read_headers(struct call *call, const struct gateway *gateway, struct text *ret_path)
{
    size_t methods, targets;
    struct text method = http_request_header(call->request, gateway->method_header, &methods);
    struct text target = http_request_header(call->request, gateway->target_header, &targets);
    struct text query;

    if (methods != 1 || targets != 1 || method.len == 0 || !http_target_is_sound(target))
        return PROBLEM_BAD_REQUEST;
    if (target.len > call->service->target_max_bytes)
        return PROBLEM_URI_TOO_LONG;
    path_split_query(target, ret_path, &query);
    return http_method_read(method, &call->method) ? PROBLEM_NONE : PROBLEM_NOT_IMPLEMENTED;
}

/* The prefix is cut off what was sent, before anything is normalised. */
static enum problem_code read_request_line(struct call *call, struct text *ret_path)
{
    struct text path = http_request_path(call->request), query = http_request_query(call->request);
    size_t query_bytes = query.ptr ? query.len + 1 : 0;

    *ret_path = text_skip(path, TEXT(EXT_AUTHZ).len);
    call->method = http_request_method(call->request);
    return ret_path->len + query_bytes > call->service->target_max_bytes ? PROBLEM_URI_TOO_LONG : PROBLEM_NONE;
}

static void judge(struct call *call, struct text path)
{
    bool has_policy;

    /* The backend gets the path as it was sent: one that others may read otherwise than we do is refused. */
    if (!guard_read_path(call, path) || !path_is_unambiguous(path)) {
        call_refuse(call, PROBLEM_BAD_REQUEST);
        return;
    }
    /* For these there is nothing to tunnel and nothing to echo anywhere. */
    if (call->method == HTTP_CONNECT || call->method == HTTP_TRACE) {
        call_refuse_method(call, HTTP_METHODS_ALLOWED);
        return;
    }
    has_policy = guard_path_lies_under(call->path, TEXT("/v1")) && !guard_path_lies_under(call->path, TEXT("/v1/auth"));
    if (has_policy)
        guard_judge(call);
    else
        call_refuse(call, PROBLEM_NOT_FOUND);
}

static void check_by_headers(struct call *call, const struct gateway *gateway)
{
    struct text path;
    enum problem_code code;

    if (call->method != HTTP_GET && call->method != HTTP_HEAD) {
        call_refuse_method(call, "GET, HEAD");
        return;
    }
    code = read_headers(call, gateway, &path);
    if (code == PROBLEM_NONE)
        judge(call, path);
    else
        call_refuse(call, code);
}

static void check_by_request_line(struct call *call)
{
    struct text path;
    enum problem_code code = read_request_line(call, &path);

    if (code == PROBLEM_NONE)
        judge(call, path);
    else
        call_refuse(call, code);
}

void check_handle(struct http_request *request, struct service *service)
{
    struct call *call = http_request_alloc(request, sizeof *call);
    struct text path = http_request_path(request);

    call->request = request;
    call->service = service;
    call->method = http_request_method(request);
    call->is_check = true;
    call->admit = allow;
    /* Gateways ask the next node. */
    if (service->draining) {
        call_refuse(call, PROBLEM_SHUTTING_DOWN);
        return;
    }
    if (text_starts_with(path, TEXT(EXT_AUTHZ "/"))) {
        check_by_request_line(call);
        return;
    }
    for (size_t i = 0; i < sizeof GATEWAYS / sizeof *GATEWAYS; i++)
        if (text_equal(path, GATEWAYS[i].path)) {
            check_by_headers(call, &GATEWAYS[i]);
            return;
        }
    call_refuse(call, PROBLEM_NOT_FOUND);
}

/* Nothing of this comes from the request: a client's own X-Auth-* never come back. */
static void allow(struct call *call)
{
    enum { SCOPES_MAX_BYTES = 256 };
    struct http_request *request = call->request;
    const struct key_record *key = call->key;
    char storage[SCOPES_MAX_BYTES];
    struct buf scopes;

    buf_init_fixed(&scopes, storage, sizeof storage);
    if (key)
        scope_print(key->scopes, ' ', &scopes);
    http_response_header(request, TEXT("X-Auth-Account"), id_text(call_account(call)));
    http_response_header(request, TEXT("X-Auth-Principal"), id_text(call_actor(call)));
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
