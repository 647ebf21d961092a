#include "token_search.h"

#include <string.h>

static void append(struct token_digests *digests, const uint8_t digest[KEYRING_DIGEST_BYTES])
{
    memcpy(digests->of[digests->count++], digest, KEYRING_DIGEST_BYTES);
}

void token_search_begin(struct token_search *search, const struct partitions *partitions,
                        const struct token_digests *digests)
{
    search->partitions = partitions;
    search->left = *digests;
}

bool token_search_next(struct token_search *search)
{
    struct token_digests left = search->left;

    if (left.count == 0)
        return false;
    search->store = partition_of_digest(search->partitions, left.of[0]);
    search->digests.count = search->left.count = 0;
    for (size_t i = 0; i < left.count; i++) {
        bool is_there = partition_of_digest(search->partitions, left.of[i]) == search->store;

        append(is_there ? &search->digests : &search->left, left.of[i]);
    }
    return true;
}
