#include "key_receipt_internal.h"
#include "core/receipt.h"
#include "handlers_internal.h"

void key_receipt_reply(struct exchange *exchange, const struct key_revocation *revocation)
{
    struct buf out = BUF_FIXED(RECEIPT_MAX_BYTES);

    key_revocation_certify(revocation, exchange->service->public_origin, exchange->service->keyring, &out);
    if (out.failed)
        exchange_refuse(exchange, PROBLEM_INTERNAL_ERROR);
    else
        http_reply(exchange->request, 200, TEXT("application/jose"), buf_text(&out));
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
