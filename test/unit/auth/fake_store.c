#include "fake_store.h"

#include <criterion/criterion.h>

#include <string.h>

void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg)
{
    cr_assert_lt(store->find_count, FAKE_FINDS_MAX);
    memcpy(store->finds[store->find_count].digest, digest, KEY_DIGEST_BYTES);
    store->finds[store->find_count].done = done;
    store->finds[store->find_count++].arg = arg;
}

void fake_store_answer_find(struct store *store, size_t nth, enum store_result result, const struct key_record *key)
{
    cr_assert_lt(nth, store->find_count);
    store->finds[nth].done(store->finds[nth].arg, result, key);
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

bool node_session_may_cache(const struct node_session *session)
{
    (void)session;
    return true;
}

void node_session_listen(struct node_session *session, const struct node_session_events *events, void *arg)
{
    session->events = *events;
    session->arg = arg;
}

bool node_session_has_lease(const struct node_session *session, uint64_t *ret_now_ns)
{
    *ret_now_ns = session->now_ns;
    return session->has_lease;
}

bool node_session_may_decide(const struct node_session *session)
{
    return !session->is_fenced || session->has_lease;
}

uint64_t node_session_epoch(const struct node_session *session)
{
    return session->epoch;
}

bool node_session_may_fill(const struct node_session *session, uint64_t epoch)
{
    return session->epoch == epoch;
}
