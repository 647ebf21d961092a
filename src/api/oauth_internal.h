/* What the OAuth routes share: errors in the form of RFC 6749 section 5.2. */
#pragma once
#include "exchange_internal.h"
#include "form_internal.h"

/* exchange_reply() with the header Pragma, which RFC 6749 section 5.1 requires in addition to Cache-Control. */
void oauth_reply(struct exchange *exchange);
/* Replies with 400. */
void oauth_refuse(struct exchange *exchange, const char *error, const char *description);
/* Reads the body by a table of fields, into texts that live as long as the request. False if the exchange has been
 * refused. */
MUST_CHECK bool oauth_read_form(struct exchange *exchange, const struct form_field *fields, size_t count, void *target);
