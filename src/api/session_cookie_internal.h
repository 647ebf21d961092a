/* The cookies of session and browser. */
#pragma once
#include "exchange_internal.h"

/* A session cookie without Max-Age: the store knows when the session ends. */
void session_cookie_set(struct exchange *exchange, const struct token *token);
void session_cookie_clear(struct exchange *exchange);
/* The digest of the one session token that the request brings; false: none, or more than one. Whether it is a session
 * is not known. */
MUST_CHECK bool session_cookie_digest(const struct exchange *exchange, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);

/* The token of a browser, for a year: it opens nothing, but guesses of strangers do not shut out who brings it. */
#define BROWSER_COOKIE_NAME TEXT("__Host-browser")
void browser_cookie_set(struct exchange *exchange, const struct token *token);
/* False: none of the right form. */
MUST_CHECK bool browser_cookie_read(const struct exchange *exchange, struct token *ret_token);
