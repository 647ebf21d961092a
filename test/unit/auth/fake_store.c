#include "fake_store.h"

#include <criterion/criterion.h>

#include <string.h>

unsigned partitions_count(const struct partitions *partitions)
{
    return partitions->count;
}

struct store *partitions_at(const struct partitions *partitions, unsigned number)
{
    cr_assert_lt(number, partitions->count);
    return partitions->stores[number];
}

void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg)
{
    cr_assert_lt(store->find_count, FAKE_FINDS_MAX);
    memcpy(store->finds[store->find_count].digest, digest, KEY_DIGEST_BYTES);
    store->finds[store->find_count].done = done;
    store->finds[store->find_count++].arg = arg;
}

void key_store_confirm(struct store *store, const struct id *id)
{
    store->confirm_count++;
    store->confirmed = *id;
}

void fake_store_answer_find(struct store *store, size_t nth, enum store_result result, const struct key_record *key)
{
    cr_assert_lt(nth, store->find_count);
    store->finds[nth].done(store->finds[nth].arg, result, key);
}

bool store_has_aliases(const struct store *store)
{
    return store->has_aliases;
}

void alias_find(struct store *store, const uint8_t digest[KEYRING_DIGEST_BYTES], alias_found *done, void *arg)
{
    (void)digest;
    cr_assert(store->has_aliases && !store->alias_done);
    store->alias_done = done;
    store->alias_arg = arg;
}

void fake_store_answer_alias(struct store *store, enum store_result result, unsigned bucket)
{
    alias_found *done = store->alias_done;

    cr_assert(done);
    store->alias_done = NULL;
    done(store->alias_arg, result, bucket);
}

void usage_store_flush(struct store *store, struct text sender, uint64_t sequence, const struct usage_batch *batch,
                       store_done *done, void *arg)
{
    cr_assert_not(store->flush_waits, "one batch at a time");
    cr_assert(batch->count + batch->refusal_count > 0 && sender.len < sizeof store->sender);
    memset(store->sender, 0, sizeof store->sender);
    memcpy(store->sender, sender.ptr, sender.len);
    cr_assert(batch->count <= USAGE_BATCH_MAX && batch->refusal_count <= USAGE_REFUSALS_BATCH_MAX);
    memcpy(store->entries, batch->entries, batch->count * sizeof *batch->entries);
    if (batch->refusal_count)
        memcpy(store->refusals, batch->refusals, batch->refusal_count * sizeof *batch->refusals);
    store->entry_count = batch->count;
    store->refusal_count = batch->refusal_count;
    store->sequence = sequence;
    store->flush_done = done;
    store->flush_arg = arg;
    store->flush_count++;
    store->flush_waits = true;
}

void fake_store_answer_flush(struct store *store, enum store_result result)
{
    cr_assert(store->flush_waits);
    store->flush_waits = false;
    store->flush_done(store->flush_arg, result);
}

bool membership_may_cache(const struct membership *member)
{
    (void)member;
    return true;
}

void membership_listen(struct membership *member, const struct membership_events *events, void *arg)
{
    member->events = *events;
    member->arg = arg;
}

bool membership_has_lease(const struct membership *member, uint64_t *ret_now_ns)
{
    if (member->looks)
        ++*member->looks;
    *ret_now_ns = member->now_ns;
    return member->has_lease;
}

uint64_t membership_lease_until_ns(const struct membership *member)
{
    return member->lease_until_ns;
}

bool membership_knows_suspended(const struct membership *member)
{
    return !member->is_ignorant;
}

bool membership_suspends(const struct membership *member, const struct id *account)
{
    return id_equal(account, &member->suspended);
}

bool membership_may_decide(const struct membership *member)
{
    return !member->is_fenced || member->has_lease;
}

uint64_t membership_epoch(const struct membership *member)
{
    return member->epoch;
}

bool membership_may_fill(const struct membership *member, uint64_t epoch)
{
    return member->epoch == epoch;
}
