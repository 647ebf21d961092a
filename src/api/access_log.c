#include "access_log_internal.h"
#include "base/random.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"

enum { NS_PER_US = 1000 };

static void log_answered(void *arg, int status)
{
    const struct exchange *exchange = arg;

    LOG(LOG_INFO, "request", LOG_REQUEST(exchange), log_str("listener", exchange->is_internal ? "internal" : "public"),
        log_str("asked_by", exchange_asked_by(exchange)), log_str("method", exchange_method_text(exchange)),
        log_text("route", exchange_route(exchange)), log_int("status", status),
        log_int("duration_us", (int64_t)(http_request_age_ns(exchange->request) / NS_PER_US)),
        log_text("ip", exchange_client_address(exchange)), log_given("account", exchange_known_account(exchange)),
        log_given("actor", exchange_known_actor(exchange)));
}

/* Draws how many requests to skip: from 0 to 2 (N - 1), N - 1 on average. Drawing once per line instead of once per
 * request costs the others nothing. */
static uint64_t draw_skips(uint64_t sample)
{
    uint64_t number;

    random_public(&number, sizeof number);
    return number % (2 * sample - 1);
}

void access_log_begin(struct exchange *exchange)
{
    struct service *service = exchange->service;

    if (service->access_log_sample == 0)
        return;
    if (service->access_log_skips > 0) {
        service->access_log_skips--;
        return;
    }
    service->access_log_skips = draw_skips(service->access_log_sample);
    http_response_on_replied(exchange->request, log_answered, exchange);
}
