/* A person's recovery codes: ten, shown once. */
#include "base/secure.h"
#include "core/recovery_code.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "records/factor_store.h"
#include "views_internal.h"

/* POST /v1/console/recovery_codes */

struct codes_made {
    struct exchange *exchange;
    struct recovery_code codes[RECOVERY_CODES]; /* wiped when the request is freed */
};

static void codes_wipe(void *codes)
{
    secure_wipe(codes, RECOVERY_CODES * sizeof(struct recovery_code));
}

static void put_codes(struct json_writer *w, const struct recovery_code *codes)
{
    char code[RECOVERY_CODE_TEXT_BYTES];

    json_object_begin(w);
    json_key(w, "recovery_codes");
    json_array_begin(w);
    for (size_t i = 0; i < RECOVERY_CODES; i++) {
        recovery_code_print(&codes[i], code);
        json_put_text(w, text_of(code));
    }
    json_array_end(w);
    json_object_end(w);
    secure_wipe(code, sizeof code);
}

static void codes_stored(void *arg, enum store_result result)
{
    const struct codes_made *op = arg;

    if (result == STORE_OK) {
        put_codes(exchange_answer(op->exchange, 201), op->codes);
        exchange_log_own(op->exchange, "recovery codes made", (struct text){0});
    }
    exchange_finish(op->exchange, result);
}

void recovery_codes_make(struct exchange *exchange)
{
    struct codes_made *op = http_request_alloc(exchange->request, sizeof *op);
    struct audit_source source = exchange_source(exchange);
    uint8_t digests[RECOVERY_CODES][KEYRING_DIGEST_BYTES];

    op->exchange = exchange;
    http_request_defer(exchange->request, codes_wipe, op->codes);
    for (size_t i = 0; i < RECOVERY_CODES; i++) {
        recovery_code_mint(&op->codes[i]);
        recovery_code_digest(exchange->service->keyring, text_of(exchange->session->user.email), &op->codes[i],
                             digests[i]);
    }
    http_request_hold(exchange->request);
    factor_store_set_recovery_codes(exchange_store(exchange), exchange_account(exchange), digests, &source,
                                    codes_stored, op);
}

/* GET /v1/console/recovery_codes */

static void codes_counted(void *arg, enum store_result result, int64_t count, int64_t made_ms)
{
    struct json_writer *w = exchange_answer(arg, 200);

    json_object_begin(w);
    json_put_number(w, "remaining", count);
    view_put_time_or_null(w, "created_at", made_ms);
    json_object_end(w);
    exchange_finish(arg, result);
}

void recovery_codes_show(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    factor_store_count_recovery_codes(exchange_store(exchange), exchange_actor(exchange), codes_counted, exchange);
}
