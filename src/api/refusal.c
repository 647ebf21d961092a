#include "refusal_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"
#include "session_cookie_internal.h"

#include <stdio.h>
#include <string.h>

enum { REFUSAL_PAUSE_MS = 5000 };

/* The kinds of refusal. Everyday mistakes of strangers get a lower level than what should never happen. */
static const struct refusal {
    enum problem_code code;
    enum log_level level;
    enum usage_reason reason; /* counted for a known key under this reason; USAGE_REASONS: not counted */
} REFUSALS[] = {
    {PROBLEM_API_KEY_REVOKED, LOG_WARN, USAGE_REVOKED},
    {PROBLEM_DEVICE_KEY_REVOKED, LOG_WARN, USAGE_REVOKED},
    {PROBLEM_INVALID_API_KEY, LOG_INFO, USAGE_REASONS},
    {PROBLEM_INSUFFICIENT_SCOPE, LOG_INFO, USAGE_SCOPE},
    {PROBLEM_MODE_NOT_PERMITTED, LOG_INFO, USAGE_MODE},
    {PROBLEM_ACCOUNT_SUSPENDED, LOG_INFO, USAGE_SUSPENDED},
    {PROBLEM_CSRF_FAILED, LOG_WARN, USAGE_REASONS},
    {PROBLEM_STEP_UP_REQUIRED, LOG_INFO, USAGE_REASONS},
    {PROBLEM_INVALID_SESSION, LOG_INFO, USAGE_REASONS},
    {PROBLEM_BEARER_NOT_ACCEPTED, LOG_INFO, USAGE_REASONS},
    /* No such id, or another account's; the response does not say which. */
    {PROBLEM_API_KEY_NOT_FOUND, LOG_INFO, USAGE_REASONS},
    {PROBLEM_DEVICE_KEY_NOT_FOUND, LOG_INFO, USAGE_REASONS},
};
enum { REFUSAL_COUNT = sizeof REFUSALS / sizeof *REFUSALS };
_Static_assert((int)REFUSAL_COUNT == (int)SERVICE_REFUSALS, "each kind has a pause of its own");

/* The id of the missing object; empty unless it has the form of an id. */
static struct text target_of(const struct exchange *exchange)
{
    struct id id;
    struct text text = exchange->match.id;

    return id_parse(ID_KEY, text, &id) || id_parse(ID_DEVICE, text, &id) ? text : (struct text){0};
}

/* A client without a cookie is just not signed in, which is no attempt. */
static bool is_an_attempt(const struct exchange *exchange, enum problem_code code)
{
    struct text token;

    return code != PROBLEM_INVALID_SESSION || session_cookie_find(exchange, &token) != COOKIE_ABSENT;
}

static void log_refusal(const struct exchange *exchange, const struct refusal *refusal, const struct log_pause *pause)
{
    LOG(refusal->level, "request refused", log_str("reason", problem_code_text(refusal->code)), LOG_REQUEST(exchange),
        log_text("ip", exchange_client_address(exchange)), log_text("account", exchange_known_account(exchange)),
        log_text("actor", exchange_known_actor(exchange)), log_text("target", target_of(exchange)),
        log_str("asked_by", exchange_asked_by(exchange)), log_str("method", exchange_method_text(exchange)),
        log_text("route", exchange_route(exchange)), log_int("suppressed", pause->suppressed));
}

static void copy_text(char *to, size_t size, struct text from)
{
    size_t bytes = from.len < size ? from.len : size - 1;

    memcpy(to, from.ptr, bytes);
    to[bytes] = '\0';
}

/* At the beginning of a character in UTF-8. */
static struct text cut(struct text t, size_t most)
{
    if (t.len <= most)
        return t;
    while (most > 0 && ((unsigned char)t.ptr[most] & 0xc0) == 0x80)
        most--;
    return (struct text){t.ptr, most};
}

/* The row of a policy may be long. */
static void copy_route(const struct exchange *exchange, struct usage_refusal *entry)
{
    size_t size = sizeof entry->route;
    size_t used = (size_t)snprintf(entry->route, size, "%s ", exchange_method_text(exchange));

    copy_text(entry->route + used, size - used, cut(exchange_route(exchange), size - used - 1));
}

static void count(struct exchange *exchange, const struct key_principal *key, enum usage_reason reason)
{
    struct usage_refusal *entry =
        usage_refuse(exchange->service->usage, key, reason, http_request_wall_ms(exchange->request));

    if (!entry)
        return;
    copy_text(entry->ip, sizeof entry->ip, exchange_client_address(exchange));
    copy_text(entry->request_id, sizeof entry->request_id, http_request_id(exchange->request));
    copy_route(exchange, entry);
}

void refusal_note(struct exchange *exchange, enum problem_code code)
{
    const struct refusal *refusal = REFUSALS;
    struct log_pause *pause;

    while (refusal->code != code)
        if (++refusal == REFUSALS + REFUSAL_COUNT)
            return;
    if (!is_an_attempt(exchange, code))
        return;
    /* A tombstone does not say whose key it was. */
    if (exchange_known_account(exchange).len > 0 && exchange_known_key(exchange) && refusal->reason != USAGE_REASONS)
        count(exchange, exchange_known_key(exchange), refusal->reason);
    pause = &exchange->service->refusal_pauses[refusal - REFUSALS];
    if (log_pause_is_over(pause, clock_boot_ns() / CLOCK_NS_PER_MS, REFUSAL_PAUSE_MS))
        log_refusal(exchange, refusal, pause);
}
