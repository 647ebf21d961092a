#include "engine/partitions.h"

#include "base/mem.h"
#include "lease/lease.h"
#include "engine/verb.h"
#include <stdio.h>
#include <stdlib.h>

/* One partition after the other. The first one judges which id the store has, if several commands found it at once. */
struct found_call {
    struct partitions *partitions;
    unsigned number;
    char id[STORE_ID_CHARS + 1];
    store_done *done;
    void *arg;
};

static void found_next(struct found_call *call);

static void finish(struct found_call *call, enum store_result result)
{
    call->done(call->arg, result);
    free(call);
}

static void on_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct found_call *call = arg;
    struct store *store = partitions_at(call->partitions, call->number);
    struct text id;

    if (result == STORE_OK && (!reply_text(reply_at(reply, 0), &id) || id.len != STORE_ID_CHARS)) {
        store_malformed(store, "store's id");
        result = STORE_UNKNOWN;
    }
    if (result == STORE_OK && call->number > 0 && !text_equal(id, text_of(call->id)))
        result = STORE_CONFLICT;
    if (result != STORE_OK) {
        finish(call, result);
        return;
    }
    snprintf(call->id, sizeof call->id, "%.*s", TEXT_ARG(id));
    if (++call->number < partitions_count(call->partitions))
        found_next(call);
    else
        finish(call, STORE_OK);
}

static void found_next(struct found_call *call)
{
    struct store *store = partitions_at(call->partitions, call->number);
    struct script_args args;
    struct buf beside = BUF_FIXED(REDIS_PREFIX_MAX_BYTES);

    store_print_prefix_beside(store, &beside);
    args_begin(&args);
    args_add(&args, text_of(call->id));
    args_add_int(&args, store_partitions(store));
    args_add_int(&args, store_partition(store));
    args_add(&args, buf_text(&beside));
    store_call_script(store, SCRIPT_store_found, SCRIPT_CHANGES, args.count, args.argv, on_found, call);
}

void partitions_found(struct partitions *partitions, store_done *done, void *arg)
{
    struct identity *identity = lease_identity(store_lease(partitions_at(partitions, 0)));
    struct found_call *call = mem_alloc(sizeof *call);

    *call = (struct found_call){.partitions = partitions, .done = done, .arg = arg};
    snprintf(call->id, sizeof call->id, "%.*s", TEXT_ARG(identity_offered(identity)));
    found_next(call);
}
