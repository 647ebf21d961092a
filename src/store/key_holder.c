#include "store/key_holder.h"

#include "base/mem.h"
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

struct revoke_call {
    const struct partitions *partitions;
    struct text ip_tag;
    struct audit_source source;
    struct key_record key; /* as found */
    key_held_revoked *done;
    void *arg;
};

static void key_was_found(void *arg, enum store_result result, const struct key_record *key);
static void key_was_revoked(void *arg, enum store_result result, const struct key_record *key);
static void miss_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict);

static void revoke_finish(struct revoke_call *call, enum store_result result, const struct key_record *key,
                          uint32_t retry_after_s)
{
    call->done(call->arg, result, key, retry_after_s);
    free(call);
}

void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret, struct text ip_tag,
                       const struct audit_source *source, key_held_revoked *done, void *arg)
{
    struct revoke_call *call = mem_alloc(sizeof *call);

    *call =
        (struct revoke_call){.partitions = partitions, .ip_tag = ip_tag, .source = *source, .done = done, .arg = arg};
    key_holder_find(partitions, secret, key_was_found, call);
}

/* The record is sealed to its digest, so the key that is revoked is the one with this secret. */
static void key_was_found(void *arg, enum store_result result, const struct key_record *key)
{
    struct revoke_call *call = arg;

    if (result == STORE_NOT_FOUND) {
        throttle_judge_address(call->partitions, call->ip_tag, THROTTLE_FAIL, miss_counted, call);
    } else if (result != STORE_OK || partitions_are_closing(call->partitions)) {
        revoke_finish(call, result == STORE_OK ? STORE_UNAVAILABLE : result, NULL, 0);
    } else {
        const struct key_view view = {.account = key->account, .kind = key->kind};

        key_copy(&call->key, key);
        key_store_revoke(partition_of_account(call->partitions, &key->account), &view, &key->id, &call->source,
                         key_was_revoked, call);
    }
}

static void key_was_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    struct revoke_call *call = arg;

    revoke_finish(call, result, result == STORE_OK ? key : &call->key, 0);
}

static void miss_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    revoke_finish(arg, result == STORE_OK ? STORE_NOT_FOUND : result, NULL, verdict->retry_after_s);
}
