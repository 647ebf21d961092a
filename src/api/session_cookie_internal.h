/* The cookies of sessions, of browsers, and of joining by a link. */
#pragma once
#include "exchange_internal.h"
#include "http/cookie.h"

/* Sets the session cookie, without Max-Age: the store decides when the session ends. */
void session_cookie_set(struct exchange *exchange, const struct token *token);
void session_cookie_clear(struct exchange *exchange);
enum cookie_result session_cookie_find(const struct exchange *exchange, struct text *ret_token);
/* The digest of the request's session token. False if there is none, or more than one. The session may not exist. */
MUST_CHECK bool session_cookie_digest(const struct exchange *exchange, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);

/* A token that marks the browser as known for one year. It grants no access, but strangers' wrong guesses do not lock
 * out a known browser. */
#define BROWSER_COOKIE_NAME TEXT("__Host-browser")
void browser_cookie_set(struct exchange *exchange, const struct token *token);
/* A token that says that this browser has started with a link, for half an hour. Nothing clears it: it is worthless
 * once the link is used. */
#define JOIN_COOKIE_NAME TEXT("__Host-join")
void join_cookie_set(struct exchange *exchange, const struct token *token);
/* These are false if there is none of the right form. */
MUST_CHECK bool join_cookie_read(const struct exchange *exchange, struct token *ret_token);
MUST_CHECK bool browser_cookie_read(const struct exchange *exchange, struct token *ret_token);
