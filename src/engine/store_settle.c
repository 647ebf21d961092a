#include "state.h"
#include "engine/store.h"
#include "engine/verb.h"

static bool settlement_read(const struct redis_reply *reply, struct store_settlement *ret_found)
{
    return reply_integer(reply_at(reply, 0), &ret_found->ahead_ms) &&
           reply_flag(reply_at(reply, 1), &ret_found->is_other) &&
           reply_integer(reply_at(reply, 2), &ret_found->ending) &&
           reply_integer(reply_at(reply, 3), &ret_found->clock_ms);
}

static void settle_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct store_settlement found = {0};

    if ((result == STORE_OK && !settlement_read(reply, &found)) ||
        (result == STORE_CONFLICT && !reply_integer(reply_at(reply, 0), &found.due))) {
        store_malformed(asked->store, "settled time");
        result = STORE_UNKNOWN;
    }
    ((store_time_settled *)asked->done)(asked->arg, result, &found);
}

void store_settle_time(struct store *store, bool looks, store_time_settled *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, looks ? TEXT("") : identity_offered(lease_identity(store->lease)));
    args_add(&args, TEXT("operator"));
    verb_ask(store, SCRIPT_store_settle_time, looks ? SCRIPT_READS : SCRIPT_CHANGES, &args, settle_answer,
             (verb_done *)done, arg);
}
