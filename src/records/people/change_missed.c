#include "records/change_missed.h"

#include "engine/verb.h"

static void missed_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    uint32_t retry_after_s = reply_limit(asked->store, reply, &result);

    ((missed_done *)asked->done)(asked->arg, result, retry_after_s);
}

void change_missed(struct store *store, const struct missed_change *missed, missed_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(missed->actor));
    args_add(&args, id_text(missed->account));
    args_add(&args, missed->mode);
    args_add_int(&args, store_limits(store)->changes_per_minute);
    args_add_int(&args, missed->count);
    args_add(&args, missed->is_email_taken ? TEXT("1") : TEXT("0"));
    verb_ask(store, SCRIPT_change_missed, SCRIPT_READS, &args, missed_answer, (verb_done *)done, arg);
}
