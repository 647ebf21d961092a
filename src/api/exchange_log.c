#include "exchange_log_internal.h"
#include "core/limits.h"
#include "core/secret.h"
#include "exchange_client_internal.h"
#include "mounts_internal.h"

static bool is_request_id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

struct text exchange_client_request_id(const struct exchange *exchange)
{
    size_t count;
    struct text id = http_request_header(exchange->request, TEXT("X-Request-Id"), &count);

    if (count != 1 || id.len > CLIENT_REQUEST_ID_MAX_BYTES || secret_begins_within(id))
        return (struct text){0};
    for (size_t i = 0; i < id.len; i++)
        if (!is_request_id_char(id.ptr[i]))
            return (struct text){0};
    return id;
}

struct trace_context exchange_trace(const struct exchange *exchange)
{
    struct trace_context context = {0};
    size_t count;
    struct text traceparent = http_request_header(exchange->request, TEXT("traceparent"), &count);

    if (count != 1 || !trace_context_parse(traceparent, &context))
        return (struct trace_context){0};
    return context;
}

const struct key_principal *exchange_known_key(const struct exchange *exchange)
{
    return exchange->key ? exchange->key : exchange->refused_key;
}

struct text exchange_known_account(const struct exchange *exchange)
{
    const struct key_principal *key = exchange_known_key(exchange);

    if (key)
        return id_text(&key->account);
    return exchange->session ? id_text(&exchange->session->user.account) : (struct text){0};
}

struct text exchange_known_actor(const struct exchange *exchange)
{
    const struct key_principal *key = exchange_known_key(exchange);

    if (key)
        return id_text(&key->id);
    return exchange->session ? id_text(&exchange->session->user.id) : (struct text){0};
}

struct text exchange_route(const struct exchange *exchange)
{
    struct text row;

    if (exchange->match.sibling)
        return text_of(exchange->match.sibling->path);
    row = route_policy_row(exchange->service->policy, exchange->path);
    return row.len == 0 && exchange->mount ? exchange->mount->path : row;
}

const char *exchange_method_text(const struct exchange *exchange)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET",       [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",       [HTTP_PUT] = "PUT",
        [HTTP_DELETE] = "DELETE", [HTTP_PATCH] = "PATCH", [HTTP_OPTIONS] = "OPTIONS",
    };
    size_t method = (size_t)exchange->method;

    return method < sizeof NAMES / sizeof *NAMES && NAMES[method] ? NAMES[method] : "other";
}

const char *exchange_asked_by(const struct exchange *exchange)
{
    return exchange->reply_refusal ? "gateway" : "client";
}

void exchange_log_with(const struct exchange *exchange, const char *message, struct log_field field,
                       struct text account, struct text actor, struct text target)
{
    LOG(LOG_INFO, message, field, LOG_REQUEST(exchange), log_text("ip", exchange_client_address(exchange)),
        log_text("account", account), log_text("actor", actor), log_text("target", target));
}

void exchange_log(const struct exchange *exchange, const char *message, struct text account, struct text actor,
                  struct text target)
{
    exchange_log_with(exchange, message, log_given("reason", (struct text){0}), account, actor, target);
}

void exchange_log_own(const struct exchange *exchange, const char *message, struct text target)
{
    exchange_log(exchange, message, exchange_known_account(exchange), exchange_known_actor(exchange), target);
}
