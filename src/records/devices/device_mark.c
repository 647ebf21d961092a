#include "device_mark.h"

bool reply_scopes(const struct redis_reply *reply, scope_set *ret_scopes)
{
    int64_t bits;

    if (!reply_integer(reply, &bits) || bits < 1 || bits > SCOPE_ALL)
        return false;
    *ret_scopes = (scope_set)bits;
    return true;
}

void device_mark(struct store *store, const struct device_mark *mark, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, mark->code_digest, KEYRING_DIGEST_BYTES);
    args_add(&args, text_of(mark->status));
    args_add(&args, id_text(mark->account));
    args_add(&args, id_text(mark->user));
    args_add(&args, mark->mac);
    verb_call_change(store, SCRIPT_device_mark, &args, done, arg);
}
