/* The audit trail as a file. */
#pragma once
#include "exchange_internal.h"

#define NO_SUCH_EVENT "starting_after is the id of no event of this account, or of one that is not kept any more."

enum trail_form { TRAIL_JSON, TRAIL_CSV, TRAIL_NDJSON };

/* Replies with all that matches the query: form is TRAIL_CSV or TRAIL_NDJSON. At most SERVICE_EXPORTS run on a node,
 * two of one account. Each page is read under the credential of the exchange: once that has ended, the export breaks
 * off. query must live as long as the request. */
void trail_export_begin(struct exchange *exchange, const struct event_query *query, enum trail_form form);
