#include "entry_internal.h"
#include "admission_internal.h"
#include "core/limits.h"
#include "core/secret.h"
#include "leaked_secret_internal.h"
#include "media_type_internal.h"

enum { CHARSET_SHOWN_BYTES = 32 }; /* no secret of ours is so short */
_Static_assert((int)CHARSET_SHOWN_BYTES < (int)SECRET_MIN_CHARS, "a secret as the charset is not shown");

static const char *explain_charset(struct exchange *exchange, struct text charset)
{
    if (charset.len > 0 && charset.len <= CHARSET_SHOWN_BYTES && !secret_begins_within(charset))
        return exchange_format(exchange, "Send the body in UTF-8, not in %.*s.", TEXT_ARG(charset));
    return "Send the body in UTF-8.";
}

/* False if the exchange has been refused. A request without a body needs no Content-Type, but a wrong one is still
 * refused. */
static bool accept_type(struct exchange *exchange)
{
    size_t count;
    struct text type = http_request_header(exchange->request, TEXT("Content-Type"), &count), charset;
    bool is_form = exchange->match.route->flags & ROUTE_FORM;
    const char *why = NULL;

    if (count == 0 && !http_request_has_body(exchange->request))
        return true;
    switch (media_type_judge(type, is_form ? TEXT("application/x-www-form-urlencoded") : TEXT("application/json"),
                             &charset)) {
    case MEDIA_FITS:
        return true;
    case MEDIA_CHARSET:
        why = explain_charset(exchange, charset);
        break;
    case MEDIA_OTHER:
        why = is_form ? "Send the body as application/x-www-form-urlencoded." : NULL;
        break;
    }
    exchange_refuse_saying(exchange, PROBLEM_UNSUPPORTED_MEDIA_TYPE, why);
    return false;
}

/* Refuses every content coding, because none is decoded here (RFC 9110 section 15.5.16). */
static bool refuse_coding(struct exchange *exchange)
{
    size_t count;

    http_request_header(exchange->request, TEXT("Content-Encoding"), &count);
    if (count == 0)
        return false;
    http_response_header(exchange->request, TEXT("Accept-Encoding"), TEXT("identity"));
    exchange_refuse_saying(exchange, PROBLEM_UNSUPPORTED_MEDIA_TYPE, "Send the body without a Content-Encoding.");
    return true;
}

static size_t body_max(const struct exchange *exchange)
{
    const struct route *route = exchange->match.route;

    if (exchange->is_internal && route->flags & ROUTE_LARGE)
        return API_BODY_RAISED_MAX_BYTES;
    if (route->who != WHO_ANYONE)
        return SIZE_MAX;
    return route->flags & ROUTE_TEXT ? STRANGER_TEXT_MAX_BYTES : STRANGER_BODY_MAX_BYTES;
}

/* Limits the body of requests without a credential, so that strangers get little memory. The principal of others is
 * known by now. */
static bool refuse_size(struct exchange *exchange)
{
    const struct route *route = exchange->match.route;

    if (route->flags & ROUTE_LARGE)
        http_request_raise_body(exchange->request, API_BODY_RAISED_MAX_BYTES);
    if (http_request_limit_body(exchange->request, body_max(exchange)))
        return false;
    http_response_close(exchange->request);
    exchange_refuse(exchange, PROBLEM_BODY_TOO_LARGE);
    return true;
}

static void body_read(void *arg, enum http_body_result result, struct text body);

void entry_enter(struct exchange *exchange)
{
    const struct route *route = exchange->match.route;
    bool takes_body = route->flags & (ROUTE_JSON | ROUTE_FORM);
    bool has_query = http_request_query(exchange->request).len > 0;

    if (leaked_secret_refuse_head(exchange))
        return;
    if (http_request_has_body(exchange->request) && (refuse_coding(exchange) || refuse_size(exchange)))
        return;
    if ((takes_body || http_request_has_body(exchange->request)) && !accept_type(exchange))
        return;
    if (has_query && !(route->flags & ROUTE_QUERY) && !exchange_read_query(exchange, &QUERY_NOTHING, NULL))
        return;
    if (takes_body && http_request_has_body(exchange->request)) {
        if (gate_has_places(route->class) && !admission_has_room(exchange))
            return;
        http_request_read_body(exchange->request, body_read, exchange);
    } else if (route->flags & ROUTE_JSON) {
        exchange_refuse(exchange, PROBLEM_INVALID_JSON);
    } else {
        admission_wait(exchange, route->handle);
    }
}

static void body_free(void *body)
{
    json_free(body);
}

/* Where it stops being JSON, if that can be said. */
static void refuse_json(struct exchange *exchange, const char *why)
{
    size_t line, column;

    if (json_find_mistake(exchange->form, &line, &column))
        why = exchange_format(exchange, "The body is not a valid JSON object: %s, at line %zu, character %zu.", why,
                              line, column);
    else
        why = exchange_format(exchange, "The body is not a valid JSON object: %s.", why);
    exchange_refuse_saying(exchange, PROBLEM_INVALID_JSON, why);
}

static void handle_json(struct exchange *exchange)
{
    const char *why;
    struct json *document = json_parse_object(exchange->form, &why);

    if (!document) {
        refuse_json(exchange, why);
        return;
    }
    http_request_defer(exchange->request, body_free, document);
    if (!(exchange->match.route->flags & ROUTE_KEYS) && leaked_secret_refuse_json(exchange, document))
        return;
    exchange->body = document;
    exchange->match.route->handle(exchange);
}

/* A body that waits for its place is not parsed yet, because its document takes several times the memory. */
static void body_read(void *arg, enum http_body_result result, struct text body)
{
    struct exchange *exchange = arg;
    const struct route *route = exchange->match.route;

    if (result != HTTP_BODY_OK)
        return;
    exchange->form = body;
    admission_wait(exchange, route->flags & ROUTE_FORM ? route->handle : handle_json);
}
