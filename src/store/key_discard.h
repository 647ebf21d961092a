/* Revokes keys whose secret reached nobody, however long Redis takes to answer. Started by key_store_discard(). */
#pragma once
#include "store/types.h"

struct key_discards;

struct key_discards *key_discards_create(struct store *store);
/* Gives up and logs discards that were not sent yet, waits for those under way, then frees. closed runs once, later. */
void key_discards_close(struct key_discards *discards, void (*closed)(void *arg), void *arg);
