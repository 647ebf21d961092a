/* GET /v1/audit/heads and GET /v1/console/audit_events/heads: where the audit logs end, signed. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/audit_signed.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "trail/audit_keeper.h"

#include <stdlib.h>

enum { MS_PER_S = 1000 };

/* Leaves out heads that were altered in Redis, which nodes log. */
static size_t read_heads(struct keyring *keyring, const struct text *heads, size_t count, struct audit_head *ret_heads)
{
    struct audit_published published;
    size_t read = 0;

    for (size_t i = 0; i < count && read < AUDIT_SIGNED_HEADS_MAX; i++)
        if (audit_published_read(keyring, heads[2 * i], heads[2 * i + 1], &published))
            ret_heads[read++] = published.head;
    return read;
}

static void reply_signed(struct exchange *exchange, const struct text *heads, size_t count)
{
    struct buf out CLEANUP(buf_finish);
    struct audit_head *read = mem_alloc((count + 1) * sizeof *read);
    const struct audit_signing signing = {
        .issuer = exchange->service->public_origin,
        .store = store_id(exchange_store(exchange)),
        .issued_s = clock_wall_ms() / MS_PER_S,
        .count = read_heads(exchange->service->keyring, heads, count, read),
        .heads = read,
    };

    buf_init(&out, AUDIT_SIGNED_MAX_BYTES);
    audit_signed_print(&signing, exchange->service->keyring, &out);
    free(read);
    if (out.failed)
        exchange_refuse(exchange, PROBLEM_INTERNAL_ERROR);
    else
        http_reply(exchange->request, 200, TEXT("application/jose"), buf_text(&out));
}

static void heads_found(void *arg, enum store_result result, const struct text *heads, size_t count)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        reply_signed(exchange, heads, count);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

void audit_heads_show(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    audit_heads_read(exchange_store(exchange), heads_found, exchange);
}
