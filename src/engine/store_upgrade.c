#include "base/mem.h"
#include "state.h"
#include "engine/store.h"
#include "engine/verb.h"
#include <stdlib.h>

struct upgrade_call {
    struct store *store;
    struct barrier *barrier;
    bool was_raised;
    void (*done)(void *arg, enum store_result result, bool was_raised);
    void *arg;
};

static void finish(struct upgrade_call *call, enum store_result result)
{
    call->done(call->arg, result, call->was_raised);
    free(call);
}

static void on_over(void *arg, bool is_over)
{
    finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

/* A node of an earlier version answers from memory until its lease ends: its next heartbeat finds another store. */
static void upgrade_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct upgrade_call *call = arg;
    int64_t lease_max_ms;

    if (result != STORE_OK) {
        barrier_drop(call->barrier);
        finish(call, result);
        return;
    }
    bool is_read =
        reply_flag(reply_at(reply, 0), &call->was_raised) && reply_integer(reply_at(reply, 1), &lease_max_ms);
    if (!is_read || !barrier_wait(call->barrier, lease_max_ms, reply_at(reply, 2), on_over, call)) {
        store_malformed(call->store, "upgrade");
        barrier_drop(call->barrier);
        finish(call, STORE_UNKNOWN);
    }
}

void store_upgrade(struct store *store, void (*done)(void *arg, enum store_result result, bool was_raised), void *arg)
{
    struct upgrade_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct upgrade_call){.store = store, .done = done, .arg = arg};
    call->barrier = barrier_begin(lease_barriers(store->lease));
    args_begin(&args);
    args_add_int(&args, STORE_SCHEMA);
    args_add(&args, identity_offered(lease_identity(store->lease)));
    args_add(&args, TEXT("operator"));
    store_call_script(store, SCRIPT_store_upgrade, SCRIPT_CHANGES, args.count, args.argv, upgrade_called, call);
}
