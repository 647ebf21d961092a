#include "records/key_holder.h"

#include "base/mem.h"
#include "core/tombstone.h"
#include "throttle.h"
#include "token_search.h"
#include <stdlib.h>

/* Finding: the partitions of the secret's digests are asked in turn, for one digest after another. */

struct find_call {
    struct token_search search;
    size_t tries; /* of the digests in this partition */
    key_found *done;
    void *arg;
};

static void find_on(void *arg, enum store_result result);
static void find_send(struct find_call *call);
static void find_answered(void *arg, enum store_result result, const struct key_record *key);

static void find_finish(struct find_call *call, enum store_result result, const struct key_record *key)
{
    call->done(call->arg, result, key);
    free(call);
}

void key_holder_find(const struct partitions *partitions, const struct token_digests *secret, key_found *done,
                     void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);

    *call = (struct find_call){.done = done, .arg = arg};
    token_search_begin(&call->search, partitions, secret);
    token_search_go_on(&call->search, find_on, call);
}

static void find_on(void *arg, enum store_result result)
{
    struct find_call *call = arg;

    call->tries = 0;
    if (result == STORE_OK)
        find_send(call);
    else
        find_finish(call, result, NULL);
}

static void find_send(struct find_call *call)
{
    key_store_find(call->search.store, call->search.digests.of[call->tries++], find_answered, call);
}

static void find_answered(void *arg, enum store_result result, const struct key_record *key)
{
    struct find_call *call = arg;

    if (result != STORE_NOT_FOUND)
        find_finish(call, result, key);
    else if (call->tries < call->search.digests.count)
        find_send(call);
    else
        token_search_go_on(&call->search, find_on, call);
}

/* Revoking */

struct holder_call {
    const struct partitions *partitions;
    struct audit_source source;
    struct key_record key; /* as found */
    key_held_revoked *done;
    void *arg;
};

static void key_was_found(void *arg, enum store_result result, const struct key_record *key);
static void key_was_revoked(void *arg, enum store_result result, const struct key_record *key);

static void revoke_finish(struct holder_call *call, enum store_result result, const struct key_record *key)
{
    call->done(call->arg, result, key);
    free(call);
}

void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret,
                       const struct audit_source *source, key_held_revoked *done, void *arg)
{
    struct holder_call *call = mem_alloc(sizeof *call);

    *call = (struct holder_call){.partitions = partitions, .source = *source, .done = done, .arg = arg};
    key_holder_find(partitions, secret, key_was_found, call);
}

/* The record is sealed to its digest, so the key that is revoked is the one with this secret. */
static void key_was_found(void *arg, enum store_result result, const struct key_record *key)
{
    struct holder_call *call = arg;

    if (result != STORE_OK) {
        revoke_finish(call, result, NULL);
    } else if (key_is_tombstone(key)) {
        revoke_finish(call, STORE_OK, NULL);
    } else if (partitions_are_closing(call->partitions)) {
        revoke_finish(call, STORE_UNAVAILABLE, NULL);
    } else {
        const struct key_view view = {.account = key->account, .kind = key->kind};

        key_copy(&call->key, key);
        key_store_revoke(partition_of_account(call->partitions, &key->account), &view, &key->id, &call->source,
                         key_was_revoked, call);
    }
}

static void key_was_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    struct holder_call *call = arg;

    revoke_finish(call, result, result == STORE_OK ? key : &call->key);
}

/* Counting */

struct miss_call {
    store_limited *done;
    void *arg;
};

static void miss_judged(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    struct miss_call *call = arg;

    call->done(call->arg, result, verdict->retry_after_s);
    free(call);
}

void key_holder_count_miss(const struct partitions *partitions, struct text ip_tag, store_limited *done, void *arg)
{
    struct miss_call *call = mem_alloc(sizeof *call);

    *call = (struct miss_call){.done = done, .arg = arg};
    throttle_judge_address(partitions, ip_tag, THROTTLE_FAIL, miss_judged, call);
}
