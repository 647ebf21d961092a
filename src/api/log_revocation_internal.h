/* What is written about revocations besides the trail: the revocation log and log lines. */
#pragma once
#include "exchange_internal.h"
#include "records/key_store.h"

/* Appends a revoked key to the revocation log, and logs it. If the former fails, that is logged and the response is
 * still 200: the key is revoked. Comes before the barrier where many are revoked: the log may name a key whose
 * revocation was not answered, but must not lack one that was. arg: the exchange. */
void log_revocation(void *arg, const struct key_record *key);
/* The same for a key that will be revoked at ends_ms, or no longer (0), as was said at said_ms by the store's time. */
void log_revocation_end(struct exchange *exchange, const struct key_record *key, int64_t said_ms);
/* The key may still be valid, and whoever is called at night must know which one. key: NULL for that of the path, or
 * those of the user in the path. Does nothing for results that are certain. */
void log_revocation_unconfirmed(const struct exchange *exchange, enum store_result result,
                                const struct key_record *key);
