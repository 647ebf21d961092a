/* Which of the cache's entries (key_cache_internal.h) are in the shared table, by their numbers, and whether its
 * readers use them. */
#pragma once
#include "auth/shared_table.h"

enum { KEY_SHARE_BYTES = 20, KEY_SHARE_NOTE_BYTES = 16 };

struct key_shares;

/* For entries with a number below `count`: KEY_SHARE_BYTES each; unused pages cost nothing. The table outlives it. */
struct key_shares *key_shares_create(struct shared_table *table, size_t count);
/* NULL is fine. */
void key_shares_destroy(struct key_shares *shares);

/* Puts the key into the table, unless it is there. The note is the caller's. */
void key_shares_put(struct key_shares *shares, uint32_t number, struct text secret, unsigned account_bucket,
                    const struct key_packed *key, const uint8_t note[KEY_SHARE_NOTE_BYTES]);
void key_shares_note(const struct key_shares *shares, uint32_t number, uint8_t ret_note[KEY_SHARE_NOTE_BYTES]);
/* Removes it from the table, if it is there. */
void key_shares_remove(struct key_shares *shares, uint32_t number);
/* All keys of the bucket are gone from the table. */
void key_shares_clear_bucket(struct key_shares *shares, unsigned bucket);
/* Another key has that number now. After key_shares_clear_bucket() it may not have been removed. */
void key_shares_forget(struct key_shares *shares, uint32_t number);

/* Readers used the key. */
void key_shares_count_use(struct key_shares *shares, uint32_t number);
/* Whether they did since this was asked last. Two who ask do not disturb each other: the one that looks for a key to
 * evict, and the one that looks for keys to refresh. */
enum key_shares_asker { KEY_SHARES_EVICTION, KEY_SHARES_REFRESH };
bool key_shares_take_use(struct key_shares *shares, uint32_t number, enum key_shares_asker asker);
