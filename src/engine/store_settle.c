#include "state.h"
#include "engine/store.h"
#include "engine/verb.h"

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
