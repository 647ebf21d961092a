/* GET /v1/whoami: the key that asks. */
#include "call_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

static void reply(struct call *call, const struct key_record *key)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    view_whoami(&(struct json_writer){.out = &out}, key);
    http_reply_json(call->request, 200, &out);
}

static void key_read(void *arg, enum store_result result, const struct key_record *key)
{
    struct call *call = arg;

    if (result == STORE_OK)
        reply(call, key);
    else
        call_refuse_store(call, result);
    http_request_release(call->request);
}

void whoami_show(struct call *call)
{
    const struct key_view view = {.account = call->key->account, .kind = call->key->kind};

    if (call->key->name_len > 0) {
        reply(call, call->key);
        return;
    }
    /* Its name is longer than what is remembered of a key. */
    http_request_hold(call->request);
    key_store_get(call->service->store, &view, &call->key->id, key_read, call);
}
