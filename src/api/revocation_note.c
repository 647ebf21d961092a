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

void revocation_note(struct exchange *exchange, const struct key_record *key)
{
    append(exchange->service, key);
    exchange_log(exchange, "key revoked", id_text(exchange_account(exchange)), id_text(exchange_actor(exchange)),
                 id_text(&key->id));
}

void revocation_note_unconfirmed(const struct exchange *exchange, enum store_result result)
{
    if (result == STORE_UNAVAILABLE || result == STORE_UNKNOWN)
        LOG(LOG_WARN, "revocation not confirmed: repeat it", log_text("target", exchange->match.id),
            log_text("account", id_text(exchange_account(exchange))),
            log_text("actor", id_text(exchange_actor(exchange))), LOG_REQUEST(exchange));
}
