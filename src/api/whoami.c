/* GET /v1/whoami: the key that asks. */
#include "call_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

void whoami_show(struct call *call)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    view_whoami(&(struct json_writer){.out = &out}, call->key);
    http_reply_json(call->request, 200, &out);
}
