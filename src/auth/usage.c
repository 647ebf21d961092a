#include "auth/usage.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "refusal_table_internal.h"
#include "usage_table_internal.h"

#include <stdlib.h>

enum { SENDER_BYTES = 16, BACKOFF_FIRST_MS = 50, TIMERS = 2 };
/* In keys of one account. Redis does nothing else while it adds a batch: 0.6 ms for 256 keys, 2 ms for 1,024. Each key
 * of the larger one costs a third less, because a batch is one fsync. So batches grow with the amount to write. */
enum { BATCH_MIN = 256, BATCHES_WANTED = 32 };

/* Uses are counted in `gathered` while `writing` is sent in batches. When all of it is written, the two are swapped. */
struct usage {
    uv_timer_t ticker;   /* the next interval, or the next attempt */
    uv_timer_t deadline; /* of a drain */
    struct store *store;
    uint32_t interval_ms, backoff_ms;
    struct usage_table gathered, writing;
    struct refusal_table refused, refusing; /* likewise, of refused requests */
    size_t written, told;                   /* entries of `writing` and `refusing` that have been written */
    size_t batch, batch_refusals;           /* entries in the batch that is being sent; a retry sends the same ones */
    uint64_t sequence;                      /* of that batch; the same at every attempt */
    char sender[2 * SENDER_BYTES + 1];
    bool is_sending; /* the store will call batch_done() */
    void (*drained)(void *arg);
    void *drained_arg;
    unsigned timers_open;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void on_tick(uv_timer_t *timer);

static void schedule(struct usage *usage, uint32_t delay_ms)
{
    CHECK(uv_timer_start(&usage->ticker, on_tick, delay_ms, 0) == 0);
}

static void name_sender(struct usage *usage)
{
    uint8_t bytes[SENDER_BYTES];
    struct buf out;
    random_public(bytes, sizeof bytes);
    buf_init_fixed(&out, usage->sender, sizeof usage->sender);
    encode_hex(&out, bytes, sizeof bytes);
    buf_append_char(&out, '\0');
    CHECK(!out.failed);
}

struct usage *usage_create(uv_loop_t *loop, struct store *store, uint32_t interval_ms)
{
    CHECK(interval_ms > 0);
    struct usage *usage = mem_alloc(sizeof *usage);
    CHECK(uv_timer_init(loop, &usage->ticker) == 0);
    CHECK(uv_timer_init(loop, &usage->deadline) == 0);
    usage->timers_open = TIMERS;
    usage->ticker.data = usage->deadline.data = usage;
    usage->store = store;
    usage->interval_ms = interval_ms;
    usage->sequence = 1;
    usage_table_init(&usage->gathered);
    usage_table_init(&usage->writing);
    name_sender(usage);
    schedule(usage, interval_ms);
    return usage;
}

/* At this rate, the table might be full before the interval ends. */
static bool is_getting_full(const struct usage *usage)
{
    return usage->gathered.count >= USAGE_TABLE_MAX / 2;
}

static bool has_work(const struct usage *usage)
{
    return usage->writing.count || usage->refusing.count;
}

/* Waiting for the interval to end, not for a retry, and not closing. */
static bool is_waiting(const struct usage *usage)
{
    return !has_work(usage) && !usage->closed;
}

void usage_count(struct usage *usage, const struct key_principal *key, int64_t wall_ms)
{
    if (!usage_table_add(&usage->gathered, key, wall_ms))
        metric_add(METRIC_USAGE_DROPPED, 1);
    if (is_getting_full(usage) && is_waiting(usage))
        schedule(usage, 0);
}

struct usage_refusal *usage_refuse(struct usage *usage, const struct key_principal *key, enum usage_reason reason,
                                   int64_t wall_ms)
{
    struct usage_refusal *entry = refusal_table_add(&usage->refused, key, reason, wall_ms);
    if (!entry)
        metric_add(METRIC_REFUSALS_DROPPED, 1);
    return entry && entry->count == 1 ? entry : NULL;
}

void usage_prefetch_first(const struct usage *usage, const struct id *key)
{
    usage_table_prefetch_slot(&usage->gathered, key);
}

void usage_prefetch_second(const struct usage *usage, const struct id *key)
{
    usage_table_prefetch_entry(&usage->gathered, key);
}

static void finish_drain(struct usage *usage)
{
    void (*drained)(void *arg) = usage->drained;
    if (!drained)
        return;
    usage->drained = NULL;
    if (!usage->closed)
        CHECK(uv_timer_stop(&usage->deadline) == 0);
    drained(usage->drained_arg);
}

static void batch_done(void *arg, enum store_result result);

static size_t batch_most(const struct usage *usage)
{
    const size_t size = usage->writing.count / BATCHES_WANTED;
    if (size < BATCH_MIN)
        return BATCH_MIN;
    return size < USAGE_BATCH_MAX ? size : USAGE_BATCH_MAX;
}

static size_t next_refusals(const struct usage *usage)
{
    const size_t left = usage->refusing.count - usage->told;
    return left < USAGE_REFUSALS_BATCH_MAX ? left : USAGE_REFUSALS_BATCH_MAX;
}

static void send_batch(struct usage *usage)
{
    usage->batch = usage_table_batch(&usage->writing, usage->written, batch_most(usage));
    usage->batch_refusals = next_refusals(usage);
    const struct usage_batch batch = {
        .entries = usage->writing.entries + usage->written,
        .count = usage->batch,
        .refusals = usage->batch_refusals ? usage->refusing.entries + usage->told : NULL,
        .refusal_count = usage->batch_refusals,
    };
    usage->is_sending = true;
    usage_store_flush(usage->store, text_of(usage->sender), usage->sequence, &batch, batch_done, usage);
}

static void swap_tables(struct usage *usage)
{
    const struct usage_table empty = usage->writing;
    usage->writing = usage->gathered;
    usage->gathered = empty;
    usage->written = 0;
    const struct refusal_table no_refusals = usage->refusing;
    usage->refusing = usage->refused;
    usage->refused = no_refusals;
    usage->told = 0;
}

static void on_tick(uv_timer_t *timer)
{
    struct usage *usage = timer->data;
    if (!has_work(usage))
        swap_tables(usage);
    if (has_work(usage)) {
        send_batch(usage);
        return;
    }
    schedule(usage, usage->interval_ms);
    finish_drain(usage);
}

static void free_if_closed(struct usage *usage)
{
    if (usage->timers_open || usage->is_sending)
        return;
    void (*closed)(void *arg) = usage->closed;
    void *arg = usage->closed_arg;
    finish_drain(usage);
    usage_table_finish(&usage->gathered);
    usage_table_finish(&usage->writing);
    refusal_table_finish(&usage->refused);
    refusal_table_finish(&usage->refusing);
    free(usage);
    closed(arg);
}

static void batch_written(struct usage *usage)
{
    for (size_t i = 0; i < usage->batch; i++)
        metric_add(METRIC_USAGE_FLUSHED, usage->writing.entries[usage->written + i].uses);
    usage->written += usage->batch;
    usage->told += usage->batch_refusals;
    usage->sequence++;
    usage->backoff_ms = 0;
    if (usage->written < usage->writing.count || usage->told < usage->refusing.count)
        return;
    usage_table_clear(&usage->writing);
    refusal_table_clear(&usage->refusing);
    usage->written = usage->told = 0;
}

static uint32_t next_backoff(struct usage *usage)
{
    const uint32_t doubled = usage->backoff_ms ? usage->backoff_ms * 2 : BACKOFF_FIRST_MS;
    usage->backoff_ms = doubled < usage->interval_ms ? doubled : usage->interval_ms;
    return usage->backoff_ms;
}

/* Whatever went wrong, the batch may have been counted. So it is sent again unchanged, under the same number. */
static void batch_done(void *arg, enum store_result result)
{
    struct usage *usage = arg;
    usage->is_sending = false;
    if (result == STORE_OK)
        batch_written(usage);
    if (usage->closed)
        free_if_closed(usage);
    else if (result != STORE_OK)
        schedule(usage, next_backoff(usage));
    else if (has_work(usage))
        send_batch(usage);
    else
        schedule(usage, usage->drained || is_getting_full(usage) ? 0 : usage->interval_ms);
}

static void on_deadline(uv_timer_t *timer)
{
    finish_drain(timer->data);
}

void usage_drain(struct usage *usage, uint32_t timeout_ms, void (*done)(void *arg), void *arg)
{
    CHECK(!usage->drained && !usage->closed);
    usage->drained = done;
    usage->drained_arg = arg;
    CHECK(uv_timer_start(&usage->deadline, on_deadline, timeout_ms, 0) == 0);
    if (!usage->is_sending)
        schedule(usage, 0);
}

static void timer_closed(uv_handle_t *handle)
{
    struct usage *usage = handle->data;
    usage->timers_open--;
    free_if_closed(usage);
}

void usage_close(struct usage *usage, void (*closed)(void *arg), void *arg)
{
    CHECK(!usage->closed);
    usage->closed = closed;
    usage->closed_arg = arg;
    uv_close((uv_handle_t *)&usage->ticker, timer_closed);
    uv_close((uv_handle_t *)&usage->deadline, timer_closed);
}
