/* GET /v1/console/system: how the deployment keeps its promises, as it measures them itself. Everybody's account is on
 * the same nodes, so it names none. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

#include "base/clock.h"
#include "auth/canary_summary.h"

static void put_time_ago(struct json_writer *w, const char *name, bool is_known, int64_t since_ms)
{
    view_put_time_or_null(w, name, is_known ? clock_wall_ms() - since_ms : 0);
}

static void put_nodes(struct json_writer *w, const struct canary_summary *canary)
{
    json_key(w, "nodes");
    json_object_begin(w);
    json_put_number(w, "asked", canary->refused + canary->accepted + canary->silent);
    json_put_number(w, "refused", canary->refused);
    json_put_number(w, "accepted", canary->accepted);
    json_put_number(w, "silent", canary->silent);
    json_object_end(w);
}

static void put_system(struct json_writer *w, const struct service *service, const struct canary_summary *canary)
{
    json_object_begin(w);
    json_key(w, "canary");
    json_object_begin(w);
    json_put_number(w, "interval_ms", service->canary_interval_ms);
    json_put_number(w, "runs", canary->runs);
    json_put_number(w, "unfinished_runs", canary->unfinished);
    put_time_ago(w, "last_run_at", canary->has_run, canary->since_run_ms);
    json_put_number(w, "effect_us", canary->took_us);
    put_nodes(w, canary);
    json_put_number(w, "violations", canary->violations);
    put_time_ago(w, "last_violation_at", canary->since_violation_ms >= 0, canary->since_violation_ms);
    json_object_end(w);
    json_object_end(w);
}

static void canary_was_summed(void *arg, enum store_result result, const struct canary_summary *canary)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        put_system(exchange_answer(exchange, 200), exchange->service, canary);
    exchange_finish(exchange, result);
}

void system_show(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    canary_sum(exchange->service->partitions, canary_was_summed, exchange);
}
