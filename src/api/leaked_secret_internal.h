/* Secrets of ours in places where none belongs. Such a text would go on to Redis, lists, trails and logs, so the
 * request is refused before anything reads it. */
#pragma once
#include "exchange_internal.h"

/* 400 secret_in_text if X-Request-Id or a parameter of the query has a whole secret. True: the exchange is refused. */
MUST_CHECK bool leaked_secret_refuse_head(struct exchange *exchange);
/* The same for names and strings in a JSON body, except passwords, which are never shown. Strings in objects within
 * the body are not looked at: no route takes any. */
MUST_CHECK bool leaked_secret_refuse_json(struct exchange *exchange, const struct json *body);
/* The message for a request of whom no credential is known: an unusable one came, or none, but a secret where none
 * belongs. NULL: no such secret came. */
const char *leaked_secret_hint(const struct exchange *exchange);
