#include "call_internal.h"
#include "base/log.h"
#include "check_internal.h"
#include "core/limits.h"
#include "refusal_internal.h"

#include <string.h>

#define FORWARDED_FOR TEXT("X-Forwarded-For")

void call_refuse_with(struct call *call, struct problem problem)
{
    problem.session_realm = call->session_realm;
    refusal_note(call, problem.code);
    if (call->is_check)
        check_mark_refusal(call->request, call->service, &problem);
    http_reply_problem(call->request, &problem);
}

void call_refuse(struct call *call, enum problem_code code)
{
    call_refuse_with(call, problem_of(code));
}

void call_refuse_method(struct call *call, const char *allow)
{
    struct problem problem = problem_of(PROBLEM_METHOD_NOT_ALLOWED);

    problem.allow = allow;
    call_refuse_with(call, problem);
}

void call_refuse_limited(struct call *call, uint32_t retry_after_s)
{
    struct problem problem = problem_of(PROBLEM_RATE_LIMITED);

    problem.message = "Too many changes within a minute. Wait, then go on.";
    problem.retry_after_s = retry_after_s;
    call_refuse_with(call, problem);
    call_log(call, "changes limited", id_text(call_account(call)), id_text(call_actor(call)), (struct text){0});
}

void call_refuse_value(struct call *call, const char *rule)
{
    struct text rest = text_of(rule), param;
    struct problem problem;

    (void)text_next(&rest, ' ', &param);
    problem = problem_param(PROBLEM_PARAMETER_INVALID, param);
    problem.message = rule;
    call_refuse_with(call, problem);
}

void call_refuse_throttled(struct call *call, uint32_t retry_after_s)
{
    struct problem problem = problem_of(PROBLEM_RATE_LIMITED);

    problem.retry_after_s = retry_after_s;
    call_refuse_with(call, problem);
}

/* The credential died while the request was on its way: what the guard would answer now. */
static bool refuse_actor(struct call *call, enum store_result result)
{
    bool is_device = call->key && call->key->kind == KEY_DEVICE;
    enum problem_code code;

    if (result == STORE_ACTOR_REVOKED)
        code = is_device ? PROBLEM_DEVICE_KEY_REVOKED : PROBLEM_API_KEY_REVOKED;
    else if (result == STORE_ACTOR_UNKNOWN)
        code = call->key ? PROBLEM_INVALID_API_KEY : PROBLEM_INVALID_SESSION;
    else if (result == STORE_ACTOR_UNPROVEN)
        code = PROBLEM_STEP_UP_REQUIRED;
    else
        return false;
    call_log(call, "change refused: its credential ended before it took effect", id_text(call_account(call)),
             id_text(call_actor(call)), (struct text){0});
    call_refuse(call, code);
    return true;
}

void call_refuse_store(struct call *call, enum store_result result)
{
    bool unsure = result == STORE_UNAVAILABLE || result == STORE_UNKNOWN;

    if (result == STORE_FULL)
        call_refuse(call, PROBLEM_KEY_LIMIT_REACHED);
    else if (!refuse_actor(call, result))
        call_refuse(call, unsure ? PROBLEM_STORE_UNAVAILABLE : PROBLEM_INTERNAL_ERROR);
}

bool call_read_body(struct call *call, const struct json_field *fields, size_t count, void *target)
{
    static const enum problem_code CODES[] = {
        [JSON_READ_MISSING] = PROBLEM_PARAMETER_MISSING,
        [JSON_READ_WRONG_TYPE] = PROBLEM_PARAMETER_INVALID,
        [JSON_READ_UNKNOWN] = PROBLEM_PARAMETER_UNKNOWN,
    };
    struct text_guess guess = {0};
    enum json_read_result result = json_read(call->body, fields, count, target, &guess.written);
    struct problem problem;

    if (result == JSON_READ_OK)
        return true;
    problem = problem_param(CODES[result], guess.written);
    for (size_t i = 0; result == JSON_READ_UNKNOWN && i < count; i++)
        text_guess_try(&guess, fields[i].name);
    problem.meant = guess.found;
    call_refuse_with(call, problem);
    return false;
}

bool call_read_query(struct call *call, query_reader *read, void *target)
{
    struct text query = http_request_query(call->request);
    struct problem problem;

    if (query.len == 0 || read(query, http_request_alloc(call->request, query.len), target, &problem))
        return true;
    call_refuse_with(call, problem);
    return false;
}

const struct id *call_account(const struct call *call)
{
    return call->key ? &call->key->account : &call->session->user.account;
}

const struct id *call_actor(const struct call *call)
{
    return call->key ? &call->key->id : &call->session->user.id;
}

/* Behind a balancer that is not named everybody is one client, whose failures stop all: the operator should know. */
static void warn_of_proxy(const struct call *call)
{
    struct service *service = call->service;
    size_t lines;

    http_request_header(call->request, FORWARDED_FOR, &lines);
    if (lines == 0 || service->has_warned_of_proxy)
        return;
    service->has_warned_of_proxy = true;
    LOG(LOG_WARN,
        "X-Forwarded-For is ignored: its sender is not in --trusted-proxies, so all behind it count as one client",
        log_text("peer", http_request_peer(call->request)));
}

/* Where trusted proxies say nothing that can be read, what they were asked by is the client: they themselves. */
static bool read_client(const struct call *call, struct address *ret_client)
{
    const struct address_ranges *trusted = call->service->trusted_proxies;
    size_t lines;

    if (!address_parse(http_request_peer(call->request), ret_client))
        return false;
    if (!trusted || !address_ranges_include(trusted, ret_client)) {
        warn_of_proxy(call);
        return true;
    }
    http_request_header(call->request, FORWARDED_FOR, &lines);
    while (lines > 0 &&
           address_walk_back(trusted, http_request_header_at(call->request, FORWARDED_FOR, --lines), ret_client))
        continue;
    return true;
}

static struct text print_client(const struct call *call, void (*print)(const struct address *client, struct buf *out))
{
    char storage[ADDRESS_TEXT_BYTES];
    struct address client;
    struct buf out;

    if (!read_client(call, &client))
        return http_request_peer(call->request); /* a unix socket */
    buf_init_fixed(&out, storage, sizeof storage);
    print(&client, &out);
    return http_request_copy(call->request, buf_text(&out));
}

struct text call_client_address(const struct call *call)
{
    return print_client(call, address_print);
}

struct text call_client_network(const struct call *call)
{
    return print_client(call, address_print_network);
}

static struct credential read_credential(const struct call *call)
{
    const struct route *route = call->match.route;
    struct credential credential = {.kind = CREDENTIAL_NONE};

    if (call->key) {
        credential.kind = CREDENTIAL_KEY;
        key_check_digest(&call->check, credential.digest);
    } else if (call->session) {
        credential.kind = CREDENTIAL_SESSION;
        memcpy(credential.digest, call->session_digest, sizeof credential.digest);
        credential.limits = &call->service->session_limits;
        credential.needs_step_up = route && (route->flags & ROUTE_STEP_UP);
    }
    return credential;
}

struct text call_client_block(const struct call *call, unsigned ipv4_bits, unsigned ipv6_bits)
{
    char storage[ADDRESS_TEXT_BYTES];
    struct address client;
    struct buf out;

    if (!read_client(call, &client))
        return http_request_peer(call->request); /* a unix socket */
    buf_init_fixed(&out, storage, sizeof storage);
    address_print_block(&client, ipv4_bits, ipv6_bits, &out);
    return http_request_copy(call->request, buf_text(&out));
}

struct audit_source call_source(const struct call *call)
{
    bool known = call->key || call->session;

    return (struct audit_source){
        .actor = known ? id_text(call_actor(call)) : (struct text){0},
        .ip = call_client_address(call),
        .request_id = http_request_id(call->request),
        .credential = read_credential(call),
    };
}

static bool is_request_id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

/* The client's own X-Request-Id, or nothing where it is not of the form that is logged. */
static struct text client_request_id(struct http_request *request)
{
    size_t count;
    struct text id = http_request_header(request, TEXT("X-Request-Id"), &count);

    if (count != 1 || id.len > CLIENT_REQUEST_ID_MAX_BYTES)
        return (struct text){0};
    for (size_t i = 0; i < id.len; i++)
        if (!is_request_id_char(id.ptr[i]))
            return (struct text){0};
    return id;
}

void call_log(const struct call *call, const char *message, struct text account, struct text actor, struct text target)
{
    LOG(LOG_INFO, message, log_text("request_id", http_request_id(call->request)),
        log_text("client_request_id", client_request_id(call->request)), log_text("ip", call_client_address(call)),
        log_text("account", account), log_text("actor", actor), log_text("target", target));
}
