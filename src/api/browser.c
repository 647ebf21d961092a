#include "browser_internal.h"

#include "core/address.h"

#include <string.h>

static struct text without_port(struct text host)
{
    const char *end = host.len > 0 && host.ptr[0] == '[' ? memchr(host.ptr, ']', host.len) : NULL;
    const char *colon = end ? NULL : host.len > 0 ? memchr(host.ptr, ':', host.len) : NULL;

    if (end && (end + 1 == host.ptr + host.len || end[1] == ':'))
        return (struct text){host.ptr + 1, (size_t)(end - host.ptr) - 1};
    return colon ? (struct text){host.ptr, (size_t)(colon - host.ptr)} : host;
}

static bool ends_with(struct text name, struct text end)
{
    return name.len > end.len && text_equal_nocase((struct text){name.ptr + name.len - end.len, end.len}, end);
}

static bool is_private(struct text name)
{
    static const struct text DOMAINS[] = {TEXT(".internal"), TEXT(".local"), TEXT(".localhost"),
                                          TEXT(".svc"),      TEXT(".test"),  TEXT(".home.arpa")};

    for (size_t i = 0; i < sizeof DOMAINS / sizeof *DOMAINS; i++)
        if (ends_with(name, DOMAINS[i]))
            return true;
    return name.len == 0 || !memchr(name.ptr, '.', name.len);
}

bool host_is_ours(struct text host, struct text names)
{
    struct text name = without_port(host), one;
    struct address address;

    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (is_private(name) || address_parse(name, &address))
        return true;
    while (text_next(&names, ',', &one))
        if (text_equal_nocase(text_trim(one), name))
            return true;
    return false;
}

/* Browsers send "none" for an address that somebody typed. */
static bool is_from_page(const struct http_request *request)
{
    size_t count;
    struct text site = http_request_header(request, TEXT("Sec-Fetch-Site"), &count);

    if (count > 0 && !text_equal(site, TEXT("none")))
        return true;
    (void)http_request_header(request, TEXT("Origin"), &count);
    return count > 0;
}

bool browser_is_refused(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const char *why;
    size_t count;
    struct text host = http_request_header(exchange->request, TEXT("Host"), &count);

    if (is_from_page(exchange->request))
        why = "No page in a browser may ask here: leave out Origin and Sec-Fetch-Site.";
    else if (service->checks_hosts && !http_request_has_client_certificate(exchange->request) &&
             !host_is_ours(host, service->internal_hosts))
        why = "This name in Host is not the node's: ask by its address, or add it to --internal-hosts.";
    else
        return false;
    exchange_refuse_saying(exchange, PROBLEM_BAD_REQUEST, why);
    return true;
}
