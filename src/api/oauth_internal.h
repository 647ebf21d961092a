/* What the OAuth routes share: errors in the form of RFC 6749 section 5.2. */
#pragma once
#include "exchange_internal.h"
#include "form_internal.h"

/* exchange_reply() with the header Pragma, which RFC 6749 section 5.1 requires in addition to Cache-Control. */
void oauth_reply(struct exchange *exchange);
/* Replies with 400. */
void oauth_refuse(struct exchange *exchange, const char *error, const char *description);
/* What a problem is in OAuth (RFC 6749 section 5.2; RFC 8628 section 3.5: slow_down; server_error and
 * temporarily_unavailable are those of RFC 6749 section 4.1.2.1, for which 5.2 has no word): appends the body, adds
 * the header Pragma, and returns the status. Clients read 400 and others of 4xx, and try again after 503. */
int oauth_print(struct http_request *request, const struct problem *problem, struct buf *out);
/* Reads the body by a table of fields, into texts that live as long as the request. False if the exchange has been
 * refused. */
MUST_CHECK bool oauth_read_form(struct exchange *exchange, const struct form_field *fields, size_t count, void *target);
