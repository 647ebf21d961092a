#include "oauth_internal.h"
#include "views_internal.h"

#include <stdio.h>

void oauth_reply(struct exchange *exchange)
{
    http_response_header(exchange->request, TEXT("Pragma"), TEXT("no-cache"));
    exchange_reply(exchange);
}

void oauth_refuse(struct exchange *exchange, const char *error, const char *description)
{
    view_oauth_error(exchange_answer(exchange, 400), error, description);
    oauth_reply(exchange);
}

bool oauth_read_form(struct exchange *exchange, const struct form_field *fields, size_t count, void *target)
{
    char *storage = http_request_alloc(exchange->request, exchange->form.len + 1);
    char description[96];
    struct text name;

    switch (form_read(exchange->form, storage, fields, count, target, &name)) {
    case FORM_OK:
        return true;
    case FORM_MISSING:
        snprintf(description, sizeof description, "The parameter %.*s is missing.", TEXT_ARG(name));
        oauth_refuse(exchange, "invalid_request", description);
        return false;
    case FORM_REPEATED:
        oauth_refuse(exchange, "invalid_request", "A parameter is repeated.");
        return false;
    case FORM_SECRET:
        oauth_refuse(exchange, "invalid_request",
                     "A parameter has an API key where none belongs: it may have leaked, revoke it (POST "
                     "/v1/auth/revoke, as the parameter token, percent-encoded).");
        return false;
    case FORM_MALFORMED:
        break;
    }
    oauth_refuse(exchange, "invalid_request", "The body is not a valid form in UTF-8.");
    return false;
}
