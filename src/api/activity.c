/* GET /v1/console/audit_events: the audit trail of an account. */
#include "core/limits.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

static void events_found(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                         bool has_more);

void audit_events_list(struct exchange *exchange)
{
    struct event_query query = {.limit = LIST_LIMIT_DEFAULT};

    if (!exchange_read_query(exchange, query_read_events, &query))
        return;
    http_request_hold(exchange->request);
    audit_store_list(exchange->service->store, exchange_account(exchange), query.limit, &query.starting_after,
                     events_found, exchange);
}

static void events_found(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                         bool has_more)
{
    struct exchange *exchange = arg;
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ANSWER_MAX_BYTES);
    if (result == STORE_OK) {
        view_events(&(struct json_writer){.out = &out}, events, count, has_more);
        http_reply_json(exchange->request, 200, &out);
    } else if (result == STORE_NOT_FOUND) {
        exchange_refuse_with(exchange, problem_param(PROBLEM_PARAMETER_INVALID, TEXT("starting_after")));
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}
