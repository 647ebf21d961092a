/* Keys whose secret nobody got: they are revoked, however long it takes Redis to answer. What asks for it is
 * key_store_discard(). */
#pragma once
#include "store/types.h"

struct key_discards;

struct key_discards *key_discards_create(struct store *store);
/* Once nothing is under way: frees. What was not sent yet is given up, and logged. closed runs once, later. */
void key_discards_close(struct key_discards *discards, void (*closed)(void *arg), void *arg);
