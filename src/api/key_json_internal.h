/* Keys as JSON: what clients send to create one, and what they see. No other module names the members of the key
 * object. */
#pragma once
#include "exchange_internal.h"

/* Reads the body that describes a new API key. is_decoy: it shall be revoked from the start. False if the exchange has
 * been refused. */
MUST_CHECK bool key_json_read(struct exchange *exchange, struct key_record *key, bool *ret_is_decoy);
/* Reads the array `scopes` of a body: known ones, at least one. False likewise. */
MUST_CHECK bool key_json_read_scopes(struct exchange *exchange, const struct json *list, scope_set *ret_scopes);

/* The key object. for_people: for the console, which also shows who created an API key. */
void key_json_put(struct json_writer *w, const struct key_record *key, bool for_people);
/* The key object with its secret. No other response contains the secret. */
void key_json_put_created(struct json_writer *w, const struct key_record *key, bool for_people, struct text secret);
void key_json_put_list(struct json_writer *w, const struct key_record *keys, size_t count, bool for_people,
                       bool has_more);
/* The body of GET /v1/whoami. */
void key_json_put_principal(struct json_writer *w, const struct key_principal *key);
