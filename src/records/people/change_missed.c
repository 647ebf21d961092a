#include "records/change_missed.h"

#include "engine/verb.h"

void change_missed(struct store *store, const struct missed_change *missed, store_limited *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(missed->actor));
    args_add(&args, id_text(missed->account));
    args_add(&args, missed->mode);
    args_add_int(&args, store_limits(store)->changes_per_minute);
    args_add_int(&args, missed->count);
    args_add(&args, missed->is_email_taken ? TEXT("1") : TEXT("0"));
    verb_call_limited(store, SCRIPT_change_missed, SCRIPT_READS, &args, done, arg);
}
