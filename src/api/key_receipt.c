/* Receipts of revocations (core/receipt.h), and the keys that verify them. */
#include "core/receipt.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "records/revocation_effect.h"

/* GET …/revocation: a JWS in compact form, signed now. */

static void revocation_found(void *arg, enum store_result result, const struct revocation_effect *revocation)
{
    struct exchange *exchange = arg;
    struct buf out = BUF_FIXED(RECEIPT_MAX_BYTES);

    if (result == STORE_OK)
        revocation_effect_certify(revocation, exchange->service->public_origin, exchange->service->keyring, &out);
    if (result != STORE_OK)
        exchange_refuse_store(exchange, result);
    else if (out.failed)
        exchange_refuse(exchange, PROBLEM_INTERNAL_ERROR);
    else
        http_reply(exchange->request, 200, TEXT("application/jose"), buf_text(&out));
    http_request_release(exchange->request);
}

void keys_certify(struct exchange *exchange)
{
    struct key_view view = key_view_of(exchange);
    struct audit_source source = exchange_source(exchange);
    struct id id;

    if (!exchange_read_id(exchange, key_id_kind(view.kind), &id))
        return;
    http_request_hold(exchange->request);
    key_store_revocation(exchange_store(exchange), &view, &id, &source, revocation_found, exchange);
}

/* GET /.well-known/jwks.json (RFC 7517). The keys change only when master keys rotate. */

void jwks_show(struct exchange *exchange)
{
    struct receipt_keys keys;
    struct buf out = BUF_FIXED(ANSWER_SMALL_BYTES);

    receipt_keys_of(exchange->service->keyring, &keys);
    receipt_keys_print(&keys, &out);
    http_reply(exchange->request, 200, TEXT("application/jwk-set+json"), buf_text(&out));
}
