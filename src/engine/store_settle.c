#include "base/mem.h"
#include "state.h"
#include "engine/store.h"
#include "engine/verb.h"
#include <stdlib.h>

struct settle_call {
    struct store *store;
    void (*done)(void *arg, enum store_result result, const struct store_settlement *found);
    void *arg;
};

static bool settlement_read(const struct redis_reply *reply, struct store_settlement *ret_found)
{
    int64_t is_other;
    bool is_read = reply_integer(reply_at(reply, 0), &ret_found->ahead_ms) &&
                   reply_integer(reply_at(reply, 1), &is_other) &&
                   reply_integer(reply_at(reply, 2), &ret_found->ending) &&
                   reply_integer(reply_at(reply, 3), &ret_found->clock_ms);

    ret_found->is_other = is_read && is_other != 0;
    return is_read;
}

static void settle_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct settle_call call = *(struct settle_call *)arg;
    struct store_settlement found = {0};

    free(arg);
    if ((result == STORE_OK && !settlement_read(reply, &found)) ||
        (result == STORE_CONFLICT && !reply_integer(reply_at(reply, 0), &found.due))) {
        store_malformed(call.store, "settled time");
        result = STORE_UNKNOWN;
    }
    call.done(call.arg, result, &found);
}

void store_settle_time(struct store *store, bool looks,
                       void (*done)(void *arg, enum store_result result, const struct store_settlement *found),
                       void *arg)
{
    struct settle_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct settle_call){store, done, arg};
    args_begin(&args);
    args_add(&args, looks ? TEXT("") : identity_offered(lease_identity(store->lease)));
    args_add(&args, TEXT("operator"));
    store_call_script(store, SCRIPT_store_settle_time, looks ? SCRIPT_READS : SCRIPT_CHANGES, args.count, args.argv,
                      settle_called, call);
}
