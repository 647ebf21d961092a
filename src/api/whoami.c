/* GET /v1/whoami: the key that the request came with. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "key_json_internal.h"

static void reply(struct exchange *exchange, const struct key_principal *key)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    key_json_put_principal(&(struct json_writer){.out = &out}, key);
    http_reply_json(exchange->request, 200, &out);
}

static void record_read(void *arg, enum store_result result, const struct key_record *record)
{
    struct exchange *exchange = arg;
    struct key_principal key;

    if (result == STORE_OK) {
        key = key_principal_of(record);
        reply(exchange, &key);
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}

void whoami_show(struct exchange *exchange)
{
    const struct key_view view = {.account = exchange->key->account, .kind = exchange->key->kind};

    if (exchange->key->name.len > 0) {
        reply(exchange, exchange->key);
        return;
    }
    http_request_hold(exchange->request);
    key_store_get(exchange_store(exchange), &view, &exchange->key->id, record_read, exchange);
}
