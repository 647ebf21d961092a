/* Checks: a gateway asks whether it may let a request pass to its backend
 * (docker/gateways/README.md#the-check-interface). Gateways copy their client's headers, so a client could send the
 * headers that another gateway uses to describe a request. So each route reads one pair of headers and no other. */
#include "core/path.h"
#include "exchange_log_internal.h"
#include "guard_internal.h"
#include "handlers_internal.h"
#include "mounts_internal.h"
#include "question_internal.h"

static void allow(struct exchange *exchange);

/* Adds X-Auth-Error to the refusal. With --check-status strict401, changes its status to one that nginx auth_request
 * understands: 401 stays, and every other verdict becomes 403 with the usual body and code. Failures of ours (500, 503)
 * are not verdicts and stay: nginx can try the next node (proxy_next_upstream http_503), then answers 500, and never
 * lets the request pass. */
void check_mark_refusal(struct http_request *request, struct problem *problem, void *arg)
{
    const struct service *service = arg;

    http_response_header(request, TEXT("X-Auth-Error"), text_of(problem_code_text(problem->code)));
    if (service->strict401 && problem_is_verdict(problem->code) && problem_status(problem->code) != 401)
        problem->status = 403;
}

static void reply_refusal(struct exchange *exchange, struct problem *problem)
{
    check_mark_refusal(exchange->request, problem, exchange->service);
    problem_reply(exchange->request, exchange->service->public_origin, problem);
}

/* PROBLEM_NONE, or why this node judges nothing. At the end of its drain, gateways ask the next one. A gateway that has
 * given up has asked it already: what this node reads of it, such as after it was stopped for a while, is neither a use
 * nor a refusal of the key. */
static enum problem_code may_judge(const struct exchange *exchange)
{
    if (exchange->service->refuses_new)
        return PROBLEM_SHUTTING_DOWN;
    return http_request_given_up(exchange->request) ? PROBLEM_OVERLOADED : PROBLEM_NONE;
}

static enum problem_code begin(struct exchange *exchange)
{
    exchange->reply_refusal = reply_refusal;
    exchange->admit = allow;
    return may_judge(exchange);
}

static enum problem_code read_request(struct exchange *exchange, struct text method, struct text target,
                                      struct text *ret_path)
{
    struct text query;

    if (method.len == 0 || !http_target_read(target, ret_path, &query))
        return PROBLEM_BAD_REQUEST;
    if (target.len > exchange->service->target_max_bytes)
        return PROBLEM_URI_TOO_LONG;
    return http_method_read(method, &exchange->method) ? PROBLEM_NONE : PROBLEM_NOT_IMPLEMENTED;
}

/* Removes the prefix from the target as sent, before anything is normalised. */
static enum problem_code read_request_line(struct exchange *exchange, struct text *ret_path)
{
    struct text path = http_request_path(exchange->request), query = http_request_query(exchange->request);
    size_t query_bytes = query.ptr ? query.len + 1 : 0;

    *ret_path = text_skip(path, exchange->mount->path.len);
    return ret_path->len + query_bytes > exchange->service->target_max_bytes ? PROBLEM_URI_TOO_LONG : PROBLEM_NONE;
}

#define PATH_AMBIGUOUS                                                                                              \
    "Servers would read this path differently: send it without empty and dot segments, ';', blanks at the ends of " \
    "segments, and escaped '?', '#' and '%'."

/* Sends the request that is asked about through the guard as if it had come itself. */
static void check_path(struct exchange *exchange, struct text path)
{
    /* The backend gets the path as sent, so refuse one that it may read differently. */
    if (!exchange_read_path(exchange, path) || !path_is_unambiguous(path)) {
        exchange_refuse_saying(exchange, PROBLEM_BAD_REQUEST, PATH_AMBIGUOUS);
        return;
    }
    /* No backend needs these methods: nothing may be tunnelled or echoed. */
    if (exchange->method == HTTP_CONNECT || exchange->method == HTTP_TRACE) {
        exchange_refuse_method(exchange, HTTP_METHODS_ALLOWED);
        return;
    }
    exchange->mount = mount_of_api(exchange->path);
    if (!exchange->mount || !(exchange->mount->flags & MOUNT_POLICY))
        exchange_refuse(exchange, PROBLEM_NOT_FOUND);
    else
        guard_begin(exchange);
}

#define REQUEST_MALFORMED "What is asked about must be a method, as in GET, and a target, as in /v1/patients/42."

static void check_unless(struct exchange *exchange, enum problem_code code, struct text path)
{
    if (code == PROBLEM_NONE)
        check_path(exchange, path);
    else
        exchange_refuse_saying(exchange, code, code == PROBLEM_BAD_REQUEST ? REQUEST_MALFORMED : NULL);
}

static void check_by_headers(struct exchange *exchange, struct text method_header, struct text target_header)
{
    size_t methods, targets;
    struct text method = http_request_header(exchange->request, method_header, &methods);
    struct text target = http_request_header(exchange->request, target_header, &targets), path = {0};
    enum problem_code code = begin(exchange);

    if (code == PROBLEM_NONE && !http_method_is_read(exchange->method)) {
        exchange_refuse_method(exchange, "GET, HEAD");
        return;
    }
    if (code == PROBLEM_NONE && (methods != 1 || targets != 1)) {
        exchange_refuse_saying(exchange, PROBLEM_BAD_REQUEST,
                               exchange_format(exchange,
                                               "%.*s and %.*s are required here, each once: the gateway sends them.",
                                               TEXT_ARG(method_header), TEXT_ARG(target_header)));
        return;
    }
    if (code == PROBLEM_NONE)
        code = read_request(exchange, method, target, &path);
    check_unless(exchange, code, path);
}

void check_auth_request(struct exchange *exchange)
{
    check_by_headers(exchange, TEXT("X-Original-Method"), TEXT("X-Original-URI"));
}

void check_forward_auth(struct exchange *exchange)
{
    check_by_headers(exchange, TEXT("X-Forwarded-Method"), TEXT("X-Forwarded-Uri"));
}

void check_ext_authz(struct exchange *exchange)
{
    struct text path = {0};
    enum problem_code code = begin(exchange);

    if (code == PROBLEM_NONE)
        code = read_request_line(exchange, &path);
    if (code == PROBLEM_NONE && path.len == 0)
        code = PROBLEM_NOT_FOUND;
    check_unless(exchange, code, path);
}

void check_question(struct exchange *exchange)
{
    const struct key_question *question = exchange->question;
    struct text path = {0};
    enum problem_code code = may_judge(exchange);

    if (code == PROBLEM_NONE && question->path.len == 0) {
        guard_begin(exchange);
        return;
    }
    if (code == PROBLEM_NONE)
        code = read_request(exchange, question->method, question->path, &path);
    check_unless(exchange, code, path);
}

void check_nothing(struct exchange *exchange)
{
    enum problem_code code = begin(exchange);

    exchange_refuse(exchange, code == PROBLEM_NONE ? PROBLEM_NOT_FOUND : code);
}

/* Gateways that forward response headers of checks can pass the trace on: a well-formed one, or none. */
static void pass_trace_on(struct exchange *exchange)
{
    const struct trace_context trace = exchange_trace(exchange);

    if (trace.trace_id.len == 0)
        return;
    struct buf out = BUF_FIXED(TRACEPARENT_CHARS);
    trace_context_print(&trace, &out);
    http_response_header(exchange->request, TEXT("traceparent"), buf_text(&out));
}

/* No value of X-Auth-* comes from the request: a client's own are never passed on. Gateways believe a yes that names
 * nobody only if it says "none", which no other server does. */
static void allow(struct exchange *exchange)
{
    enum { SCOPES_MAX_BYTES = 256 };
    struct http_request *request = exchange->request;
    const struct key_principal *key = exchange->key;
    char storage[SCOPES_MAX_BYTES];
    struct buf scopes;

    if (key || exchange->session) {
        buf_init_fixed(&scopes, storage, sizeof storage);
        if (key)
            scope_print(key->scopes, ' ', &scopes);
        http_response_header(request, TEXT("X-Auth-Account"), id_text(exchange_account(exchange)));
        http_response_header(request, TEXT("X-Auth-Principal"), id_text(exchange_actor(exchange)));
        http_response_header(request, TEXT("X-Auth-Kind"), key ? key_kind_text(key->kind) : TEXT("session"));
        if (key)
            http_response_header(request, TEXT("X-Auth-Mode"), key_mode_text(key->mode));
        else
            http_response_header(request, TEXT("X-Auth-Role"), role_text(exchange->session->user.role));
        http_response_header(request, TEXT("X-Auth-Scopes"), buf_text(&scopes));
        http_response_header(request, TEXT("X-Auth-Billable"),
                             key && key->mode == MODE_LIVE ? TEXT("true") : TEXT("false"));
    } else {
        http_response_header(request, TEXT("X-Auth-Kind"), TEXT("none"));
    }
    pass_trace_on(exchange);
    http_reply(request, 200, (struct text){0}, (struct text){0});
}
