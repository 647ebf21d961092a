/* Finds the link or the recovery of a token. Each of the token's digests names a partition where it may be, so a verb
 * asks one partition after another until one knows it. With one partition that is one call. */
#pragma once
#include "core/token.h"
#include "store/partitions.h"
#include "store/types.h"

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
/* If the store does not know any of the digests, there may be an alias of one (store/alias.h). False: there is none, so
 * go on with token_search_next(). True: done runs once, later. With STORE_OK, store is another one now, to be asked for
 * the same digests; with STORE_NOT_FOUND, go on with token_search_next(). */
MUST_CHECK bool token_search_follow(struct token_search *search, store_done *done, void *arg);
