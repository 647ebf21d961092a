/* GET /v1/console/usage: the usage of an account. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "usage_groups_internal.h"
#include "views_internal.h"

enum { USAGE_DAYS_DEFAULT = 30 };

static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count);

void usage_show(struct exchange *exchange)
{
    struct usage_query query = {0};

    if (!exchange_read_query(exchange, &QUERY_USAGE, &query))
        return;
    if (query.period.is_given) {
        usage_groups_show(exchange, &query.period);
        return;
    }
    if (query.days == 0)
        query.days = USAGE_DAYS_DEFAULT;
    http_request_hold(exchange->request);
    usage_store_read(exchange_store(exchange), exchange_account(exchange),
                     &(struct usage_wanted){.days = query.days, .keys = query.key_ids, .key_count = query.key_count},
                     usage_found, exchange);
}

static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count)
{
    if (result == STORE_OK)
        view_usage(exchange_answer(arg, 200), days, day_count, keys, key_count);
    exchange_finish(arg, result);
}
