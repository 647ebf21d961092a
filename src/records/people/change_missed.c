#include "records/change_missed.h"

#include "base/mem.h"
#include "engine/verb.h"
#include <stdlib.h>

struct missed_call {
    struct store *store;
    missed_done *done;
    void *arg;
};

static void missed_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct missed_call call = *(struct missed_call *)arg;
    uint32_t retry_after_s = reply_limit(call.store, reply, &result);

    free(arg);
    call.done(call.arg, result, retry_after_s);
}

void change_missed(struct store *store, const struct missed_change *missed, missed_done *done, void *arg)
{
    struct missed_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct missed_call){store, done, arg};
    args_begin(&args);
    args_add(&args, id_text(missed->actor));
    args_add(&args, id_text(missed->account));
    args_add(&args, missed->mode);
    args_add_int(&args, store_limits(store)->changes_per_minute);
    args_add_int(&args, missed->count);
    args_add(&args, missed->is_email_taken ? TEXT("1") : TEXT("0"));
    store_call_script(store, SCRIPT_change_missed, SCRIPT_READS, args.count, args.argv, missed_called, call);
}
