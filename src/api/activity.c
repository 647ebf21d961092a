/* GET /v1/console/audit_events and GET /v1/audit: the audit trail of an account. */
#include "accept_internal.h"
#include "core/limits.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "trail_export_internal.h"
#include "views_internal.h"

static void events_found(void *arg, enum store_result result, const struct audit_page *page)
{
    struct exchange *exchange = arg;
    if (result == STORE_NOT_FOUND) {
        exchange_refuse_value(exchange, NO_SUCH_EVENT);
        http_request_release(exchange->request);
        return;
    }
    if (result == STORE_OK)
        view_events(exchange_answer(exchange, 200), page);
    exchange_finish(exchange, result);
}

/* Events about live keys and people are not for test keys. */
static bool sees_test_keys_only(const struct exchange *exchange)
{
    return exchange->key && exchange->key->mode == MODE_TEST;
}

/* A client that asked for a file must never take one page for it. False: the exchange has been refused. */
static bool choose_form(struct exchange *exchange, enum trail_form *ret_form)
{
    static const struct accept_row ROWS[] = {
        {TEXT("application/json"), TRAIL_JSON},
        {TEXT("text/csv"), TRAIL_CSV},
        {TEXT("application/csv"), TRAIL_CSV},
        {TEXT("application/x-ndjson"), TRAIL_NDJSON},
        {TEXT("application/ndjson"), TRAIL_NDJSON},
        {TEXT("application/jsonl"), TRAIL_NDJSON},
        {TEXT("application/x-jsonl"), TRAIL_NDJSON},
        {TEXT("application/jsonlines"), TRAIL_NDJSON},
        {TEXT("application/x-jsonlines"), TRAIL_NDJSON},
    };
    int form;

    if (!accept_choose(exchange->request, ROWS, sizeof ROWS / sizeof *ROWS, &form)) {
        exchange_refuse(exchange, PROBLEM_NOT_ACCEPTABLE);
        return false;
    }
    *ret_form = (enum trail_form)form;
    return true;
}

static void list_page(struct exchange *exchange, const struct event_query *query)
{
    http_request_hold(exchange->request);
    audit_store_search(exchange_store(exchange), exchange_account(exchange), &query->filter, query->limit,
                       &query->starting_after, events_found, exchange);
}

void audit_events_list(struct exchange *exchange)
{
    struct event_query *query = http_request_alloc(exchange->request, sizeof *query);
    struct audit_source *reader = http_request_alloc(exchange->request, sizeof *reader);
    enum trail_form form;

    if (!exchange_read_query(exchange, &QUERY_EVENTS, query) || !choose_form(exchange, &form))
        return;
    *reader = exchange_source(exchange);
    query->filter.reader = reader;
    query->filter.is_wanted = exchange_is_wanted;
    query->filter.arg = exchange;
    query->filter.test_keys_only = sees_test_keys_only(exchange);
    if (form != TRAIL_JSON && query->limit > 0) {
        exchange_refuse_value(exchange, "limit is for JSON: CSV and NDJSON have everything that matches.");
    } else if (form != TRAIL_JSON) {
        trail_export_begin(exchange, query, form);
    } else {
        query->limit = query->limit > 0 ? query->limit : LIST_LIMIT_DEFAULT;
        list_page(exchange, query);
    }
}
