/* The check path's read: a command prepared once, and reusable calls. Started by key_store_find(). */
#pragma once
#include "store/types.h"

struct key_finder;

struct key_finder *key_finder_create(struct store *store);
/* Only after the links are closed, when no call is pending. */
void key_finder_destroy(struct key_finder *finder);
