/* What the console shows of an account: its audit trail and its usage. */
#include "call_internal.h"
#include "core/limits.h"
#include "handlers_internal.h"
#include "views_internal.h"

/* GET /v1/console/audit_events */

static void events_found(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                         bool has_more);

void audit_events_list(struct call *call)
{
    struct event_query query = {.limit = LIST_LIMIT_STANDARD};

    if (!call_read_query(call, query_read_events, &query))
        return;
    http_request_hold(call->request);
    audit_store_list(call->service->store, call_account(call), query.limit, &query.starting_after, events_found, call);
}

static void events_found(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                         bool has_more)
{
    struct call *call = arg;
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ANSWER_MAX_BYTES);
    if (result == STORE_OK) {
        view_events(&(struct json_writer){.out = &out}, events, count, has_more);
        http_reply_json(call->request, 200, &out);
    } else if (result == STORE_NOT_FOUND) {
        call_refuse_with(call, problem_param(PROBLEM_PARAMETER_INVALID, TEXT("starting_after")));
    } else {
        call_refuse_store(call, result);
    }
    http_request_release(call->request);
}

/* GET /v1/console/usage */

enum { USAGE_DAYS_STANDARD = 30 };

static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count);

void usage_show(struct call *call)
{
    struct usage_query query = {.days = USAGE_DAYS_STANDARD};

    if (!call_read_query(call, query_read_usage, &query))
        return;
    http_request_hold(call->request);
    usage_store_read(call->service->store, call_account(call),
                     &(struct usage_wanted){query.days, query.key_ids, query.key_count}, usage_found, call);
}

static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count)
{
    struct call *call = arg;
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ANSWER_MAX_BYTES);
    if (result == STORE_OK) {
        view_usage(&(struct json_writer){.out = &out}, days, day_count, keys, key_count);
        http_reply_json(call->request, 200, &out);
    } else {
        call_refuse_store(call, result);
    }
    http_request_release(call->request);
}
