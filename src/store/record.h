/* Which records of Redis are believed: those that were sealed with one of the store's master keys. */
#pragma once
#include "core/record_mac.h"
#include "script.h"

/* The keyring that seals; the store must have one. */
struct keyring *store_keyring(const struct store *store);
/* Whether what was read may be used: STORE_OK; STORE_NOT_FOUND: it was made by nobody who knows a master key, and is
 * counted and logged; STORE_UNAVAILABLE: that can't be told, for the master keys here are not those of the store, or
 * not yet known to be. what: "key"; id: what the record says it is. A store without a keyring takes everything. */
enum store_result store_believe(struct store *store, const struct record_parts *record, struct text mac,
                                const char *what, struct text id);
enum store_result store_believe_key(struct store *store, struct text packed, const uint8_t *digest,
                                    const struct id *id);
/* The same of what can be told without a MAC: never STORE_OK. */
enum store_result store_altered(struct store *store, const char *what, struct text id);
/* What a digest that is not there means: STORE_NOT_FOUND, or STORE_UNAVAILABLE as above. */
enum store_result store_absent(const struct store *store);
/* What Redis' clock says now, as far as is known: for times that a node seals. */
int64_t store_clock_ms(const struct store *store);

/* For the store's own parts */

/* Asks which master keys made this store's records; done runs as a script's. */
void record_keys_ask(struct store *store, script_done *done);
/* Takes the reply in: the store's own verdicts, and the facts'. */
void record_keys_answered(struct store *store, enum store_result result, const struct redis_reply *reply);
