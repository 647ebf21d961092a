#include "key_grant_internal.h"
#include "base/clock.h"
#include "exchange_log_internal.h"
#include "key_json_internal.h"

void key_grant_begin(struct key_grant *grant, struct exchange *exchange)
{
    struct key_record *key = &grant->key;

    grant->exchange = exchange;
    http_request_defer(exchange->request, secret_wipe, &grant->secret);
    key->id = id_mint(key_id_kind(key->kind), clock_wall_ms());
    key->created_ms = id_time_ms(&key->id);
}

void key_grant_draw(struct key_grant *grant)
{
    struct key_record *key = &grant->key;

    secret_draw(grant->exchange->service->keyring, bucket_of_account(&key->account), key->kind, key->mode,
                &grant->secret, grant->digest);
    key_set_last4(key, secret_text(&grant->secret));
}

/* Without an account, nothing was sent yet that could make the key. */
static void discard(struct key_grant *grant)
{
    struct audit_source source = exchange_source(grant->exchange);

    if (!grant->key.account.text[0])
        return;
    source.actor = TEXT("system");
    source.credential.kind = CREDENTIAL_NONE;
    key_store_discard(partition_of_account(grant->exchange->service->partitions, &grant->key.account), &grant->key.id,
                      &source);
    exchange_log(grant->exchange, "key discarded: its secret was not delivered", id_text(&grant->key.account),
                 source.actor, id_text(&grant->key.id));
}

static void delivered(void *arg, bool is_delivered)
{
    struct key_grant *grant = arg;

    if (!is_delivered)
        discard(grant);
    else if (grant->delivered)
        grant->delivered(grant);
    http_request_release(grant->exchange->request);
}

bool key_grant_stored(struct key_grant *grant, enum store_result result)
{
    struct http_request *request = grant->exchange->request;

    if (result == STORE_OK && !http_request_gone(request)) {
        http_response_on_delivered(request, delivered, grant);
        return true;
    }
    if (result == STORE_OK || result == STORE_UNKNOWN)
        discard(grant);
    return false;
}

void key_grant_reply(struct key_grant *grant)
{
    struct exchange *exchange = grant->exchange;
    struct buf location = BUF_FIXED(96);

    buf_append_str(&location, exchange->session ? "/v1/console/api_keys/" : "/v1/api_keys/");
    buf_append_text(&location, id_text(&grant->key.id));
    http_response_header(exchange->request, TEXT("Location"), buf_text(&location));

    key_json_put_created(exchange_answer(exchange, 201), &grant->key, exchange->session != NULL,
                         secret_text(&grant->secret));
    exchange_reply(exchange);
    exchange_log_own(exchange, "key created", id_text(&grant->key.id));
}
