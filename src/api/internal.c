/* The internal listener for operators and probes: liveness, readiness, metrics. No credential is needed, so only the
 * machine, its operators and its gateways may reach this listener. */
#include "base/json.h"
#include "base/metrics.h"
#include "exchange_internal.h"
#include "handlers_internal.h"

/* durability: how the node knows that Redis is durable; NULL: of no interest. */
static void reply_status(struct http_request *request, int http_status, const char *status, const char *reason,
                         const char *durability)
{
    char storage[1024];
    struct buf out;
    struct json_writer w = {.out = &out};

    buf_init_fixed(&out, storage, sizeof storage);
    json_object_begin(&w);
    json_put_member(&w, "status", text_of(status));
    if (reason)
        json_put_member(&w, "reason", text_of(reason));
    if (durability)
        json_put_member(&w, "redis_durability", text_of(durability));
    json_object_end(&w);
    http_reply_json(request, http_status, &out);
}

static bool is_read(struct exchange *exchange)
{
    bool fits = exchange->method == HTTP_GET || exchange->method == HTTP_HEAD;

    if (!fits)
        exchange_refuse_method(exchange, "GET, HEAD");
    return fits;
}

/* Never touches the store, because a node without Redis is alive. */
void liveness_show(struct exchange *exchange)
{
    if (is_read(exchange))
        reply_status(exchange->request, 200, "ok", NULL, NULL);
}

void readiness_show(struct exchange *exchange)
{
    struct http_request *request = exchange->request;
    const struct service *service = exchange->service;

    if (!is_read(exchange))
        return;
    /* Only what the node cannot see for itself is worth telling. */
    const char *durability = store_asserts_durability(service->store) ? "asserted" : NULL;
    const char *trouble = store_trouble(service->store);

    if (service->draining)
        reply_status(request, 503, "draining", "The node is shutting down.", durability);
    else if (!store_is_ready(service->store))
        reply_status(request, 503, store_is_empty(service->store) ? "empty" : "unavailable", trouble, durability);
    else /* some things may not work all the same, because other nodes could not do them either */
        reply_status(request, 200, "ok", trouble[0] ? trouble : NULL, durability);
}

enum { METRICS_MAX_BYTES = 128 * 1024 };

void metrics_show(struct exchange *exchange)
{
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, METRICS_MAX_BYTES);
    if (!is_read(exchange))
        return;
    metric_set(METRIC_READY, !exchange->service->draining && store_is_ready(exchange->service->store));
    metrics_print(&out, CHATELAINE_VERSION);
    problem_print_counts(&out);
    http_reply(exchange->request, 200, TEXT("text/plain; version=0.0.4"), buf_text(&out));
}
