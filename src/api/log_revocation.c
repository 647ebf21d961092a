#include "log_revocation_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "exchange_log_internal.h"

#include <string.h>

static struct text store_of(const struct service *service, const struct key_record *key)
{
    return store_id(partition_of_account(service->partitions, &key->account));
}

/* The log tells why. */
static void count_failure(int error)
{
    metric_add(METRIC_REVOCATION_LOG_FAILED, error != 0);
}

static void append(struct service *service, const struct key_record *key)
{
    if (service->revocation_log)
        count_failure(revocation_log_append(service->revocation_log, key, store_of(service, key)));
}

static const char *append_end(struct service *service, const struct key_record *key, int64_t said_ms)
{
    if (service->revocation_log)
        count_failure(revocation_log_append_end(service->revocation_log, key, said_ms, store_of(service, key)));
    return key->ends_ms > 0 ? "revocation scheduled" : "scheduled revocation withdrawn";
}

void api_log_ended_key(void *service, const struct key_record *key, int64_t said_ms, const char *why)
{
    const char *what = "key revoked";

    if (key->revoked_ms > 0)
        append(service, key);
    else
        what = append_end(service, key, said_ms);
    LOG(LOG_INFO, what, log_text("account", id_text(&key->account)), log_text("target", id_text(&key->id)),
        log_str("why", why));
}

void log_revocation_end(struct exchange *exchange, const struct key_record *key, int64_t said_ms)
{
    char ends[CLOCK_RFC3339_BYTES] = "";

    if (key->ends_ms > 0)
        clock_print_rfc3339(key->ends_ms, ends);
    exchange_log_with(exchange, append_end(exchange->service, key, said_ms), log_given("revoke_at", text_of(ends)),
                      id_text(&key->account), id_text(exchange_actor(exchange)), id_text(&key->id));
}

/* Whoever revokes without being known holds the secret. */
static struct text actor_of(const struct exchange *exchange)
{
    struct text actor = exchange_known_actor(exchange);

    return actor.len > 0 ? actor : ACTOR_HOLDER;
}

void log_revocation(void *arg, const struct key_record *key)
{
    const struct exchange *exchange = arg;

    append(exchange->service, key);
    exchange_log(exchange, "key revoked", id_text(&key->account), actor_of(exchange), id_text(&key->id));
}

/* What the path names; empty for a list, whose path a row with an id may have looked at first. */
static struct text named_in_path(const struct exchange *exchange)
{
    return strchr(exchange->match.route->path, '{') ? exchange->match.id : (struct text){0};
}

void log_revocation_unconfirmed(const struct exchange *exchange, enum store_result result, const struct key_record *key)
{
    if (result == STORE_UNAVAILABLE || result == STORE_UNKNOWN)
        LOG(LOG_WARN, "revocation not confirmed: repeat it",
            log_given("target", key ? id_text(&key->id) : named_in_path(exchange)),
            log_text("account", key ? id_text(&key->account) : exchange_known_account(exchange)),
            log_text("actor", actor_of(exchange)), LOG_REQUEST(exchange));
}
