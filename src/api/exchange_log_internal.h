/* What log lines say about an exchange. Never the path, the query or a header's raw value, because each may contain a
 * secret. */
#pragma once
#include "base/log.h"
#include "core/trace_context.h"
#include "exchange_internal.h"

/* The fields that tie a line to its request, for LOG(). */
#define LOG_REQUEST(exchange)                                                 \
    log_text("request_id", http_request_id((exchange)->request)),             \
        log_given("client_request_id", exchange_client_request_id(exchange)), \
        log_given("trace_id", exchange_trace(exchange).trace_id),             \
        log_given("span_id", exchange_trace(exchange).span_id)

/* The client's own X-Request-Id; empty unless it has the form that may be logged, and no secret of a key. */
struct text exchange_client_request_id(const struct exchange *exchange);
/* The client's traceparent; empty unless there is one, well-formed. */
struct trace_context exchange_trace(const struct exchange *exchange);

/* The principal, or the known key that is being refused; empty if there is none. */
const struct key_principal *exchange_known_key(const struct exchange *exchange);
struct text exchange_known_account(const struct exchange *exchange);
struct text exchange_known_actor(const struct exchange *exchange);
/* The row of the route table, the policy or the mounts that covers the path; empty if none does. */
struct text exchange_route(const struct exchange *exchange);
const char *exchange_method_text(const struct exchange *exchange);
const char *exchange_asked_by(const struct exchange *exchange);

/* Logs one line about something that an operator may have to find later. account, actor, target: empty if there is
 * none. */
void exchange_log(const struct exchange *exchange, const char *message, struct text account, struct text actor,
                  struct text target);
/* The same for what the principal did. */
void exchange_log_own(const struct exchange *exchange, const char *message, struct text target);
/* With one field more, such as `reason`. */
void exchange_log_with(const struct exchange *exchange, const char *message, struct log_field field,
                       struct text account, struct text actor, struct text target);
