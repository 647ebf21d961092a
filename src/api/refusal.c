#include "refusal_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/cookie.h"

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

static const struct key_principal *known_key(const struct exchange *exchange)
{
    return exchange->key ? exchange->key : exchange->refused_key;
}

static struct text account_of(const struct exchange *exchange)
{
    const struct key_principal *key = known_key(exchange);

    if (key)
        return id_text(&key->account);
    return exchange->session ? id_text(&exchange->session->user.account) : (struct text){0};
}

static struct text principal_of(const struct exchange *exchange)
{
    const struct key_principal *key = known_key(exchange);

    if (key)
        return id_text(&key->id);
    return exchange->session ? id_text(&exchange->session->user.id) : (struct text){0};
}

/* The path of a table row instead of the request's path, which may contain a secret. */
static struct text route_of(const struct exchange *exchange)
{
    return exchange->match.sibling ? text_of(exchange->match.sibling->path)
                                   : route_policy_row(exchange->service->policy, exchange->path);
}

static const char *method_of(const struct exchange *exchange)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET",       [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",       [HTTP_PUT] = "PUT",
        [HTTP_DELETE] = "DELETE", [HTTP_PATCH] = "PATCH", [HTTP_OPTIONS] = "OPTIONS",
    };
    size_t method = (size_t)exchange->method;

    return method < sizeof NAMES / sizeof *NAMES && NAMES[method] ? NAMES[method] : "other";
}

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
    size_t count;
    struct text header, token;

    if (code != PROBLEM_INVALID_SESSION)
        return true;
    header = http_request_header(exchange->request, TEXT("Cookie"), &count);
    return count && cookie_find(header, SESSION_COOKIE_NAME, &token) != COOKIE_ABSENT;
}

static void log_refusal(const struct exchange *exchange, const struct refusal *refusal, const struct log_pause *pause)
{
    LOG(refusal->level, "request refused", log_str("reason", problem_code_text(refusal->code)),
        log_text("request_id", http_request_id(exchange->request)), log_text("ip", exchange_client_address(exchange)),
        log_text("account", account_of(exchange)), log_text("actor", principal_of(exchange)),
        log_text("target", target_of(exchange)), log_str("asked_by", exchange->mark_refusal ? "gateway" : "client"),
        log_str("method", method_of(exchange)), log_text("route", route_of(exchange)),
        log_int("suppressed", pause->suppressed));
}

static void copy_text(char *to, size_t size, struct text from)
{
    size_t bytes = from.len < size ? from.len : size - 1;

    memcpy(to, from.ptr, bytes);
    to[bytes] = '\0';
}

static void count(struct exchange *exchange, const struct key_principal *key, enum usage_reason reason)
{
    struct usage_refusal *entry =
        usage_refuse(exchange->service->usage, key, reason, http_request_wall_ms(exchange->request));

    if (!entry)
        return;
    copy_text(entry->ip, sizeof entry->ip, exchange_client_address(exchange));
    copy_text(entry->request_id, sizeof entry->request_id, http_request_id(exchange->request));
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
    if (known_key(exchange) && refusal->reason != USAGE_REASONS)
        count(exchange, known_key(exchange), refusal->reason);
    pause = &exchange->service->refusal_pauses[refusal - REFUSALS];
    if (log_pause_is_over(pause, clock_boot_ns() / CLOCK_NS_PER_MS, REFUSAL_PAUSE_MS))
        log_refusal(exchange, refusal, pause);
}
