/* A key as JSON: what clients send to make one, and what they see of it. Nothing else names the members of the key
 * object. */
#pragma once
#include "exchange_internal.h"

/* Reads the body that describes a new API key. False: refused. */
MUST_CHECK bool key_json_read(struct exchange *exchange, struct key_record *key);

/* The key object. for_people: in the console API keys also tell who made them. */
void key_json_put(struct json_writer *w, const struct key_record *key, bool for_people);
/* The same with its secret: the one answer that has it. */
void key_json_put_created(struct json_writer *w, const struct key_record *key, bool for_people, struct text secret);
void key_json_put_list(struct json_writer *w, const struct key_record *keys, size_t count, bool for_people,
                       bool has_more);
/* The answer of whoami. */
void key_json_put_principal(struct json_writer *w, const struct key_principal *key);
