#include "token_search.h"

#include "engine/alias.h"

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
    search->digests.count = search->left.count = search->followed = 0;
    for (size_t i = 0; i < left.count; i++) {
        bool is_there = partition_of_digest(search->partitions, left.of[i]) == search->store;

        append(is_there ? &search->digests : &search->left, left.of[i]);
    }
    return true;
}

static void on_alias(void *arg, enum store_result result, unsigned bucket);

static void follow_next(struct token_search *search)
{
    alias_find(search->store, search->digests.of[search->followed++], on_alias, search);
}

static void next_or_none(struct token_search *search)
{
    search->done(search->arg, token_search_next(search) ? STORE_OK : STORE_NOT_FOUND);
}

static void on_alias(void *arg, enum store_result result, unsigned bucket)
{
    struct token_search *search = arg;

    if (result == STORE_NOT_FOUND && search->followed < search->digests.count) {
        follow_next(search);
        return;
    }
    if (result == STORE_NOT_FOUND) {
        next_or_none(search);
        return;
    }
    if (result == STORE_OK) {
        search->store = partition_of_bucket(search->partitions, bucket);
        search->followed = search->digests.count;
    }
    search->done(search->arg, result);
}

void token_search_go_on(struct token_search *search, store_done *done, void *arg)
{
    search->done = done;
    search->arg = arg;
    if (search->followed < search->digests.count && store_has_aliases(search->store))
        follow_next(search);
    else
        next_or_none(search);
}
