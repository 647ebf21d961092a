/* Console sessions: their cookie, which holds a struct token, and their CSRF tokens
 * (src/api/README.md#console-sessions). */
#pragma once
#include "core/token.h"
#include "records/session_store.h"

enum { CSRF_TOKEN_CHARS = 43 };

#define SESSION_COOKIE_NAME TEXT("__Host-session")

/* The CSRF token of a session: an HMAC of its stable name. Tokens made with a retired master key match too. */
void csrf_token_print(struct keyring *keyring, const char *sid, char ret_token[CSRF_TOKEN_CHARS + 1]);
MUST_CHECK bool csrf_token_matches(struct keyring *keyring, const char *sid, struct text token);
/* The Origin rule: an absent Origin passes; any other must be exactly the public origin. */
MUST_CHECK bool csrf_origin_matches(struct text origin, bool present, struct text public_origin);
/* Keyed names of throttle counters, 64 hex digits: digests of what is counted, never the thing itself. */
enum { THROTTLE_TAG_CHARS = 64 };
void throttle_tag(struct keyring *keyring, struct text kind, struct text value, char ret_tag[THROTTLE_TAG_CHARS + 1]);
