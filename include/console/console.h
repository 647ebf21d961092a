/* The console's pages and the API's description, embedded in the binary (ARCHITECTURE.md#the-console). The pages use
 * the API under /v1/console/… and /v1/auth/… like any other client: nothing here knows about sessions, keys or the
 * store.
 *
 * The pages' files lie under /console/<digest of all of them>/ and may be cached forever; the document, which names
 * that digest, is revalidated on every load (ETag). */
#pragma once
#include "base/attr.h"
#include "base/text.h"

struct http_request;

enum { CONSOLE_HEADERS_MAX_BYTES = 1024 };

/* Filled by console_init(); lives as long as the server that answers with it. */
struct console {
    struct text page_headers, file_headers; /* complete lines */
    struct text localhost_goes_to;          /* an origin; empty: nowhere */
    char page_storage[CONSOLE_HEADERS_MAX_BYTES], file_storage[CONSOLE_HEADERS_MAX_BYTES];
};

void console_init(struct console *console, bool is_https);
/* For development, where people type http://localhost:PORT: pages requested there are redirected to the origin, which
 * has the same port and must live as long. Nobody could sign in at any origin but the public one. */
void console_redirect_localhost(struct console *console, struct text origin);
/* Answers "/", "/console", "/console/…" and "/openapi.json", and no other path. */
void console_answer(const struct console *console, struct http_request *request);
