/* The internal listener for operators and probes: liveness, readiness, metrics. No credential is needed, so only the
 * machine, its operators and its gateways may reach this listener. */
#include "base/json.h"
#include "base/metrics.h"
#include "base/process_metrics.h"
#include "exchange_internal.h"
#include "handlers_internal.h"

enum { REASON_MAX_BYTES = 4096 };

/* reason: empty for none. durability: how the node knows that Redis is durable; NULL: of no interest. */
static void reply_status(struct http_request *request, int http_status, const char *status, struct text reason,
                         const char *durability)
{
    struct buf out = BUF_FIXED(2 * REASON_MAX_BYTES);
    struct json_writer w = {.out = &out};

    json_object_begin(&w);
    json_put_member(&w, "status", text_of(status));
    if (reason.len > 0)
        json_put_member(&w, "reason", reason);
    if (durability)
        json_put_member(&w, "redis_durability", text_of(durability));
    json_object_end(&w);
    http_reply_json(request, http_status, &out);
}

/* Never touches the store, because a node without Redis is alive. */
void liveness_show(struct exchange *exchange)
{
    reply_status(exchange->request, 200, "ok", (struct text){0}, NULL);
}

static bool is_ready(const struct service *service)
{
    return !service->starting && !service->draining && partitions_ready(service->partitions) > 0;
}

void readiness_show(struct exchange *exchange)
{
    struct http_request *request = exchange->request;
    const struct service *service = exchange->service;
    struct buf trouble = BUF_FIXED(REASON_MAX_BYTES);

    /* Only what the node cannot see for itself is worth telling. */
    const char *durability = store_asserts_durability(partitions_at(service->partitions, 0)) ? "asserted" : NULL;

    partitions_trouble(service->partitions, &trouble);
    if (service->draining)
        reply_status(request, 503, "draining", TEXT("The node is shutting down."), durability);
    else if (partitions_ready(service->partitions) == 0)
        reply_status(request, 503, partitions_are_empty(service->partitions) ? "empty" : "unavailable",
                     buf_text(&trouble), durability);
    else if (service->starting)
        reply_status(request, 503, "unavailable", TEXT("The node is about to serve."), durability);
    else /* some things may not work all the same, because other nodes could not do them either */
        reply_status(request, 200, "ok", buf_text(&trouble), durability);
}

/* The same on the public listener, for balancers that can probe only the port that they balance. Everybody may ask, so
 * they say nothing else. */
void liveness_probe(struct exchange *exchange)
{
    http_reply(exchange->request, 200, (struct text){0}, (struct text){0});
}

void readiness_probe(struct exchange *exchange)
{
    http_reply(exchange->request, is_ready(exchange->service) ? 200 : 503, (struct text){0}, (struct text){0});
}

enum { METRICS_MAX_BYTES = 128 * 1024 };

static const char *code_text(size_t code)
{
    return problem_code_text((enum problem_code)code);
}

void metrics_show(struct exchange *exchange)
{
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, METRICS_MAX_BYTES);
    metric_set(METRIC_READY, is_ready(exchange->service));
    metric_set(METRIC_PARTITIONS, partitions_count(exchange->service->partitions));
    metric_set(METRIC_PARTITIONS_READY, partitions_ready(exchange->service->partitions));
    process_metrics_measure();
    metrics_print(&out, CHATELAINE_VERSION);
    metrics_print_by_label(&out, METRICS_REFUSALS, PROBLEM_COUNT, code_text);
    http_reply(exchange->request, 200, TEXT("text/plain; version=0.0.4"), buf_text(&out));
}
