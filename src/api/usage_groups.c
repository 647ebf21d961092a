/* GET /v1/usage, and GET /v1/console/usage with group_by: what a period adds up to, by day, by mode, or by key. And GET
 * /v1/console/usage without: the last days, and what some keys had of them. */
#include "base/clock.h"
#include "core/limits.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "views_internal.h"

enum { MS_PER_DAY = 86400000, USAGE_DAYS_DEFAULT = 30 };

struct usage_groups {
    struct exchange *exchange;
    struct usage_period period;
    struct id ids[LIST_LIMIT_MAX]; /* of this page of keys */
    enum key_mode modes[LIST_LIMIT_MAX];
    size_t count;
    bool has_more;
};

static void keys_found(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more);
static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count);

static bool test_only(const struct exchange *exchange)
{
    return exchange->key && exchange->key->mode == MODE_TEST;
}

static unsigned days_of(const struct usage_period *period)
{
    return (unsigned)((period->to_ms - period->from_ms) / MS_PER_DAY) + 1;
}

/* Also says which default counts. False: the exchange has been refused. */
static bool settle_period(struct exchange *exchange, struct usage_period *period)
{
    if (period->to_ms == 0)
        period->to_ms = http_request_wall_ms(exchange->request) / MS_PER_DAY * MS_PER_DAY;
    if (period->from_ms == 0)
        period->from_ms = period->to_ms - (USAGE_PERIOD_DAYS - 1) * (int64_t)MS_PER_DAY;
    if (period->limit == 0)
        period->limit = LIST_LIMIT_DEFAULT;
    if (period->from_ms > period->to_ms)
        exchange_refuse_value(exchange, "from must not be later than to.");
    else if (period->to_ms - period->from_ms >= USAGE_DAYS_MAX * (int64_t)MS_PER_DAY)
        exchange_refuse_value(exchange, "from must be at most 366 days before the end of the period.");
    else
        return true;
    return false;
}

static void read_usage(struct usage_groups *groups)
{
    const struct usage_wanted wanted = {.days = days_of(&groups->period),
                                        .last_ms = groups->period.to_ms,
                                        .keys = groups->ids,
                                        .key_count = groups->count};

    usage_store_read(exchange_store(groups->exchange), exchange_account(groups->exchange), &wanted, usage_found,
                     groups);
}

/* A page has fewer keys than asked for if its period is long. */
static void list_keys(struct usage_groups *groups)
{
    const struct exchange *exchange = groups->exchange;
    unsigned most = USAGE_CELLS_MAX / days_of(&groups->period);
    const struct key_query query = {
        .view = {.account = *exchange_account(exchange), .any_kind = true, .test_only = test_only(exchange)},
        .limit = groups->period.limit < most ? groups->period.limit : most,
        .starting_after = groups->period.starting_after,
        .by_mode = test_only(exchange),
        .mode = MODE_TEST,
    };

    key_store_list(exchange_store(exchange), &query, keys_found, groups);
}

/* Read under the account of the exchange; a test key sees test usage. */
static void show_groups(struct exchange *exchange, const struct usage_period *period)
{
    struct usage_groups *groups = http_request_alloc(exchange->request, sizeof *groups);

    *groups = (struct usage_groups){.exchange = exchange, .period = *period};
    if (!settle_period(exchange, &groups->period))
        return;
    http_request_hold(exchange->request);
    if (period->group == USAGE_BY_KEY)
        list_keys(groups);
    else
        read_usage(groups);
}

void usage_period_show(struct exchange *exchange)
{
    struct usage_period period = {0};

    if (exchange_read_query(exchange, &QUERY_USAGE_PERIOD, &period))
        show_groups(exchange, &period);
}

static void keys_found(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct usage_groups *groups = arg;

    if (result != STORE_OK) {
        exchange_finish(groups->exchange, result);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        groups->ids[i] = keys[i].id;
        groups->modes[i] = keys[i].mode;
    }
    groups->count = count;
    groups->has_more = has_more;
    read_usage(groups);
}

struct sums {
    int64_t requests, billable, refused;
};

static void add(struct sums *sums, enum key_mode mode, int64_t requests, int64_t refused)
{
    sums->requests += requests;
    sums->billable += view_billable(mode == MODE_LIVE, requests);
    sums->refused += refused;
}

static void put_sums(struct json_writer *w, const struct sums *sums)
{
    json_put_number(w, "requests", sums->requests);
    json_put_number(w, "billable", sums->billable);
    json_put_number(w, "refused", sums->refused);
    json_object_end(w);
}

static struct sums sums_of_day(const struct usage_day *day, enum key_mode mode)
{
    struct sums sums = {0};

    if (mode == MODE_LIVE)
        add(&sums, mode, day->live_requests, day->live_refused);
    else
        add(&sums, mode, day->test_requests, day->test_refused);
    return sums;
}

static struct sums sums_of_days(const struct usage_day *days, size_t count, enum key_mode mode)
{
    struct sums all = {0};

    for (size_t i = 0; i < count; i++) {
        struct sums day = sums_of_day(&days[i], mode);

        add(&all, mode, day.requests, day.refused);
    }
    return all;
}

static void put_row(struct json_writer *w, const char *date, const struct id *key, enum key_mode mode, struct sums sums)
{
    json_object_begin(w);
    if (date)
        json_put_member(w, "date", text_of(date));
    if (key)
        json_put_member(w, "key", id_text(key));
    json_put_member(w, "mode", key_mode_text(mode));
    put_sums(w, &sums);
}

static void put_modes(struct json_writer *w, const struct usage_groups *groups, const struct usage_day *days,
                      size_t count)
{
    for (int mode = MODE_TEST; mode <= MODE_LIVE; mode++)
        if (mode == MODE_TEST || !test_only(groups->exchange))
            put_row(w, NULL, NULL, (enum key_mode)mode, sums_of_days(days, count, (enum key_mode)mode));
}

static void put_days(struct json_writer *w, const struct usage_groups *groups, const struct usage_day *days,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_row(w, days[i].date, NULL, MODE_TEST, sums_of_day(&days[i], MODE_TEST));
        if (!test_only(groups->exchange))
            put_row(w, days[i].date, NULL, MODE_LIVE, sums_of_day(&days[i], MODE_LIVE));
    }
}

static void put_keys(struct json_writer *w, const struct usage_groups *groups, const struct usage_key *keys)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct sums sums = {0};
        int64_t refused = 0;

        for (size_t reason = 0; reason < USAGE_REASONS; reason++)
            refused += keys[i].refused[reason];
        add(&sums, groups->modes[i], keys[i].requests, refused);
        put_row(w, NULL, &groups->ids[i], groups->modes[i], sums);
    }
}

static void put_answer(struct json_writer *w, const struct usage_groups *groups, const struct usage_day *days,
                       size_t day_count, const struct usage_key *keys)
{
    struct sums total = sums_of_days(days, day_count, MODE_TEST), live = sums_of_days(days, day_count, MODE_LIVE);

    if (!test_only(groups->exchange))
        add(&total, MODE_LIVE, live.requests, live.refused);
    view_list_begin(w);
    if (groups->period.group == USAGE_BY_KEY)
        put_keys(w, groups, keys);
    else if (groups->period.group == USAGE_BY_MODE)
        put_modes(w, groups, days, day_count);
    else
        put_days(w, groups, days, day_count);
    json_array_end(w);
    json_put_flag(w, "has_more", groups->has_more);
    json_put_member(w, "from", text_of(days[0].date));
    json_put_member(w, "to", text_of(days[day_count - 1].date));
    json_key(w, "total");
    json_object_begin(w);
    put_sums(w, &total);
    json_object_end(w);
}

static void usage_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count)
{
    struct usage_groups *groups = arg;

    if (result == STORE_OK && groups->count > 0 && key_count != groups->count)
        result = STORE_UNAVAILABLE;
    if (result == STORE_OK)
        put_answer(exchange_answer(groups->exchange, 200), groups, days, day_count, keys);
    exchange_finish(groups->exchange, result);
}

/* GET /v1/console/usage */

static void days_found(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                       const struct usage_key *keys, size_t key_count)
{
    if (result == STORE_OK)
        view_usage(exchange_answer(arg, 200), days, day_count, keys, key_count);
    exchange_finish(arg, result);
}

void usage_show(struct exchange *exchange)
{
    struct usage_query query = {0};

    if (!exchange_read_query(exchange, &QUERY_USAGE, &query))
        return;
    if (query.period.is_given) {
        show_groups(exchange, &query.period);
        return;
    }
    if (query.days == 0)
        query.days = USAGE_DAYS_DEFAULT;
    http_request_hold(exchange->request);
    usage_store_read(exchange_store(exchange), exchange_account(exchange),
                     &(struct usage_wanted){.days = query.days, .keys = query.key_ids, .key_count = query.key_count},
                     days_found, exchange);
}
