/* Finds the link or the recovery of a token. Each of the token's digests names a partition where it may be, so a verb
 * asks one partition after another until one knows it. With one partition that is one call. */
#pragma once
#include "core/token.h"
#include "store/partitions.h"

struct token_search {
    const struct partitions *partitions;
    struct token_digests left;
    struct store *store;          /* to ask now */
    struct token_digests digests; /* for these */
};

void token_search_begin(struct token_search *search, const struct partitions *partitions,
                        const struct token_digests *digests);
/* Sets store and digests. The partition of the current master key's digest comes first. False: all were asked. */
MUST_CHECK bool token_search_next(struct token_search *search);
