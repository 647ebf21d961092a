/* A short name for the browser that sent a User-Agent header (RFC 9110 section 10.1.5), for lists of sessions. The
 * header is a claim and can be anything: names come from a table, and nothing of the header itself is ever shown. */
#pragma once
#include "base/text.h"

enum { BROWSER_NAME_BYTES = 48 };

/* "Firefox on Windows"; without a known system "curl"; without a known browser "Unknown browser". Reads at most the
 * first 512 bytes. */
void user_agent_name(struct text user_agent, char ret_name[BROWSER_NAME_BYTES]);
