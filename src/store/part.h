/* How the store runs what lies above it (README.md, "Rooms"): its parts register, so it needs none of their symbols. */
#pragma once
#include "store/store_parts.h"
#include "store/types.h"

/* One kind of part. Each store makes one of each. */
struct store_part {
    /* Links and lease exist, but nothing is connected yet. */
    void *(*create)(struct store *store);
    /* Frees what create() returned. All calls of links and scripts have completed, further ones are refused, and the
     * lease still exists. closed runs once, at once or later. */
    void (*close)(void *made, void (*closed)(void *arg), void *arg);
};

/* What create() returned for this store. It must not be closed yet. */
void *store_part(const struct store *store, const struct store_part *part);

/* In store.c */

/* parts ends with NULL. */
void parts_create(struct store *store, const struct store_part *const *parts);
/* One after the other, in their order. closed runs once, at once or later. */
void parts_close(struct store *store, void (*closed)(struct store *store));
