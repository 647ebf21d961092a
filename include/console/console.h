/* The console's pages and the API description, embedded in the binary (src/console/README.md). The pages use the
 * API under /v1/console/… and /v1/auth/… like any other client, so this module knows nothing about sessions, keys or
 * the store.
 *
 * The files are served under /console/<digest of all of them>/ and may be cached forever. The document that names the
 * digest is revalidated on every load (ETag). */
#pragma once
#include "base/attr.h"
#include "base/text.h"

struct http_request;

enum { CONSOLE_HEADERS_MAX_BYTES = 1024 };

/* Filled by console_init(). Must outlive the server that uses it. */
struct console {
    struct text page_headers, file_headers; /* complete lines */
    struct text localhost_goes_to;          /* an origin; empty: no redirect */
    char page_storage[CONSOLE_HEADERS_MAX_BYTES], file_storage[CONSOLE_HEADERS_MAX_BYTES];
};

void console_init(struct console *console, bool is_https);
/* For development, where people type http://localhost:PORT: redirects pages requested there to origin, which has the
 * same port and must outlive the console. Sign-in works only at the public origin. */
void console_redirect_localhost(struct console *console, struct text origin);
/* Answers "/", "/console", "/console/…", "/docs", "/docs/…" and "/openapi.json". No other path may be passed. */
void console_answer(const struct console *console, struct http_request *request);
