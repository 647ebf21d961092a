/* Whether a record from Redis can be trusted: it must be sealed with one of the store's master keys. */
#pragma once
#include "core/record_mac.h"
#include "engine/script.h"

/* The keyring that seals new records. The store must have one. */
struct keyring *store_keyring(const struct store *store);
/* Checks a record's MAC. STORE_OK: use it. STORE_NOT_FOUND: the MAC is wrong; counted and logged. STORE_UNAVAILABLE:
 * cannot tell, because the given master keys are not the store's or that is not known yet. what: "key", …; id: as the
 * record itself says. A store without a keyring accepts everything. */
enum store_result store_believe(struct store *store, const struct record_parts *record, struct text mac,
                                const char *what, struct text id);
enum store_result store_believe_key(struct store *store, struct text packed, const uint8_t *digest,
                                    const struct id *id);
/* Reports a record that is provably altered even without checking its MAC. Returns STORE_NOT_FOUND or STORE_UNAVAILABLE
 * as above, never STORE_OK. */
enum store_result store_altered(struct store *store, const char *what, struct text id);
/* The result for a digest that is not in Redis: STORE_NOT_FOUND, or STORE_UNAVAILABLE as above. */
enum store_result store_absent(const struct store *store);
/* Redis' clock, for times that a node seals. Call it behind store_know_clock(). */
int64_t store_clock_ms(const struct store *store);

/* For the store's own files */

/* Reads the names of the master keys that made this store's records. done runs as for store_call_script(). */
void record_keys_ask(struct store *store, script_done *done);
/* Stores the reply in the facts and in the store. */
void record_keys_answered(struct store *store, enum store_result result, const struct redis_reply *reply);
