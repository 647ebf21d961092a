#include "open_row_internal.h"

#include <string.h>

/* The only line of that name; empty: there is none, or several. A gateway may have joined several by commas, which
 * neither an origin nor a method contains. */
static struct text read_only_line(const struct exchange *exchange, struct text name)
{
    size_t count;
    struct text value = http_request_header(exchange->request, name, &count);

    return count == 1 && value.len > 0 && !memchr(value.ptr, ',', value.len) ? value : (struct text){0};
}

static bool admits_preflight(const struct exchange *exchange)
{
    struct text origin = read_only_line(exchange, TEXT("Origin"));
    struct text name = read_only_line(exchange, TEXT("Access-Control-Request-Method"));
    enum http_method method;

    return origin.len > 0 && name.len > 0 && http_method_read(name, &method) && method != HTTP_CONNECT &&
           method != HTTP_TRACE &&
           route_policy_takes_preflight(exchange->service->policy, exchange->path, http_method_is_read(method));
}

bool open_row_admits(const struct exchange *exchange)
{
    if (exchange->method == HTTP_OPTIONS)
        return admits_preflight(exchange);
    return http_method_is_read(exchange->method) && route_policy_is_public(exchange->service->policy, exchange->path);
}
