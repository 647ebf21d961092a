#include "revocation_note_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "exchange_log_internal.h"

#include <string.h>

/* If the disk is full, every revocation fails to be logged. */
enum { LOG_FAILED_PAUSE_MS = 1000 };

static void append(struct service *service, const struct key_record *key)
{
    int error = service->revocation_log ? revocation_log_append(service->revocation_log, key) : 0;

    if (error == 0)
        return;
    metric_add(METRIC_REVOCATION_LOG_FAILED, 1);
    if (!log_pause_is_over(&service->revocation_log_pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_FAILED_PAUSE_MS))
        return;
    LOG(LOG_ERROR, "revocation log write failed; the missing keys are in 'key revoked' log lines",
        log_str("why", strerror(error)), log_text("key", id_text(&key->id)));
}

void revocation_note(struct exchange *exchange, const struct key_record *key, struct text actor)
{
    append(exchange->service, key);
    exchange_log(exchange, "key revoked", id_text(&key->account), actor, id_text(&key->id));
}

void revocation_note_unconfirmed(const struct exchange *exchange, enum store_result result, struct text account,
                                 struct text actor, struct text target)
{
    if (result == STORE_UNAVAILABLE || result == STORE_UNKNOWN)
        LOG(LOG_WARN, "revocation not confirmed: repeat it", log_given("target", target), log_text("account", account),
            log_text("actor", actor), LOG_REQUEST(exchange));
}
