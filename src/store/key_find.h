/* The check path's read: its command, made once, and its calls, to be used again. What asks is key_store_find(). */
#pragma once
#include "store/types.h"

struct key_finder;

struct key_finder *key_finder_create(struct store *store);
/* When the links are closed, so that no call is under way. */
void key_finder_destroy(struct key_finder *finder);
