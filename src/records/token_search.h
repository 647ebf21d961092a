/* Finds the link or the recovery of a token. Each of the token's digests names a partition where it may be, so a verb
 * asks one partition after another until one knows it. With one partition that is one call. */
#pragma once
#include "core/token.h"
#include "engine/partitions.h"
#include "engine/types.h"

struct token_search {
    const struct partitions *partitions;
    struct token_digests left;
    struct store *store;          /* to ask now */
    struct token_digests digests; /* for these */
    size_t followed;              /* of these digests, whose aliases have been looked for */
    store_done *done;
    void *arg;
};

void token_search_begin(struct token_search *search, const struct partitions *partitions,
                        const struct token_digests *digests);
/* Sets store and digests. The partition of the current master key's digest comes first. False: all were asked. */
MUST_CHECK bool token_search_next(struct token_search *search);
/* The store, if there is one yet, knows none of the digests: follows an alias of one of them (store/alias.h), or else
 * goes on to the next partition. done runs once, perhaps inside this call. STORE_OK: ask the store for the digests.
 * STORE_NOT_FOUND: all were asked. */
void token_search_go_on(struct token_search *search, store_done *done, void *arg);
