#include "auth/usage.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "refusal_table_internal.h"
#include "usage_table_internal.h"

#include <stdlib.h>

enum { SENDER_BYTES = 16, BACKOFF_FIRST_MS = 50 };
/* The use of a revoked key is written without waiting for the interval. But nobody who has one can cause more batches
 * than that. */
enum { URGENT_EVERY_MS = 1000 };
/* In keys of one account. Redis does nothing else while it adds a batch: 0.6 ms for 256 keys, 2 ms for 1,024. Each key
 * of the larger one costs a third less, because a batch is one fsync. So batches grow with the amount to write. */
enum { BATCH_MIN = 256, BATCHES_WANTED = 32 };
/* In all tables of one kind together, 64 MiB. Up to 16 partitions have whole ones. */
enum { ENTRIES_MAX = 1 << 20 };

_Static_assert(ENTRIES_MAX / PARTITIONS_MAX >= 4096, "each table holds some batches");

/* Uses of one partition's keys. They are counted in `gathered` while `writing` is sent in batches. When all of it is
 * written, the two are swapped. */
struct writer {
    struct usage *usage;
    uv_timer_t ticker; /* the next interval, or the next attempt */
    struct store *store;
    uint32_t backoff_ms;
    struct usage_table gathered, writing;
    struct refusal_table refused, refusing; /* likewise, of refused requests */
    size_t written, refusals_written;       /* entries of `writing` and `refusing` that have been written */
    size_t batch, batch_refusals;           /* entries in the batch that is being sent; a retry sends the same ones */
    uint64_t sequence;                      /* of that batch; the same at every attempt */
    char sender[2 * SENDER_BYTES + 1];
    uint64_t urgent_ns; /* when the last batch with such a use began; 0: never */
    bool is_urgent;     /* one is among `refused` */
    bool is_sending;    /* the store will call batch_done() */
    bool is_drained;    /* while the usage drains: everything was written */
};

struct usage {
    uint32_t interval_ms;
    uv_timer_t deadline; /* of a drain */
    struct callback drained;
    unsigned open; /* timers that are not closed yet, and batches under way */
    struct callback closed;
    unsigned count; /* a power of two */
    struct writer writers[];
};

static void on_tick(uv_timer_t *timer);

static void schedule(struct writer *writer, uint32_t delay_ms)
{
    CHECK(uv_timer_start(&writer->ticker, on_tick, delay_ms, 0) == 0);
}

static void begin_writer(struct usage *usage, uv_loop_t *loop, struct store *store, struct writer *writer)
{
    const size_t share = ENTRIES_MAX / usage->count, most = share < USAGE_TABLE_MAX ? share : USAGE_TABLE_MAX;
    CHECK(uv_timer_init(loop, &writer->ticker) == 0);
    usage->open++;
    writer->ticker.data = writer;
    writer->usage = usage;
    writer->store = store;
    writer->sequence = 1;
    usage_table_init(&writer->gathered, most);
    usage_table_init(&writer->writing, most);
    random_hex(writer->sender, sizeof writer->sender);
    schedule(writer, usage->interval_ms);
}

struct usage *usage_create(uv_loop_t *loop, const struct partitions *partitions, uint32_t interval_ms)
{
    REQUIRE(interval_ms > 0);
    const unsigned count = partitions_count(partitions);
    struct usage *usage = mem_alloc(sizeof *usage + count * sizeof *usage->writers);
    usage->interval_ms = interval_ms;
    usage->count = count;
    CHECK(uv_timer_init(loop, &usage->deadline) == 0);
    usage->open++;
    usage->deadline.data = usage;
    for (unsigned i = 0; i < count; i++)
        begin_writer(usage, loop, partitions_at(partitions, i), &usage->writers[i]);
    return usage;
}

/* At this rate, the table might be full before the interval ends. */
static bool is_getting_full(const struct writer *writer)
{
    return writer->gathered.count >= writer->gathered.most / 2;
}

static bool has_work(const struct writer *writer)
{
    return writer->writing.count || writer->refusing.count;
}

/* Waiting for the interval to end, not for a retry, and not closing. */
static bool is_waiting(const struct writer *writer)
{
    return !has_work(writer) && !writer->usage->closed.run;
}

/* Of a single partition no bucket is computed. */
static struct writer *writer_of(struct usage *usage, const struct id *account)
{
    return &usage->writers[usage->count == 1 ? 0 : bucket_of_account(account) & (usage->count - 1)];
}

static const struct writer *writer_at(const struct usage *usage, unsigned bucket)
{
    return &usage->writers[bucket & (usage->count - 1)];
}

void usage_count(struct usage *usage, const struct key_principal *key, uint32_t uses, int64_t wall_ms)
{
    struct writer *writer = writer_of(usage, &key->account);
    if (!usage_table_add(&writer->gathered, key, uses, wall_ms))
        metric_add(METRIC_USAGE_DROPPED, uses);
    if (is_getting_full(writer) && is_waiting(writer))
        schedule(writer, 0);
}

bool usage_has_room(const struct usage *usage)
{
    for (unsigned i = 0; i < usage->count; i++)
        if (usage->writers[i].gathered.count >= usage->writers[i].gathered.most / 4 * 3)
            return false;
    return true;
}

/* When the next batch may begin, of one that is urgent: URGENT_EVERY_MS after the one before. */
static uint32_t urgent_in_ms(const struct writer *writer)
{
    const uint64_t since_ms = (clock_boot_ns() - writer->urgent_ns) / CLOCK_NS_PER_MS;
    return writer->urgent_ns == 0 || since_ms >= URGENT_EVERY_MS ? 0 : (uint32_t)(URGENT_EVERY_MS - since_ms);
}

/* How long gathered entries wait. */
static uint32_t wait_ms(const struct writer *writer)
{
    const uint32_t interval_ms = writer->usage->interval_ms;
    if (writer->usage->drained.run || is_getting_full(writer))
        return 0;
    if (!writer->is_urgent)
        return interval_ms;
    return urgent_in_ms(writer) < interval_ms ? urgent_in_ms(writer) : interval_ms;
}

/* Now, or when the batch under way is written. Never later than was planned. */
static void write_soon(struct writer *writer)
{
    writer->is_urgent = true;
    if (is_waiting(writer) && wait_ms(writer) < uv_timer_get_due_in(&writer->ticker))
        schedule(writer, wait_ms(writer));
}

struct usage_refusal *usage_refuse(struct usage *usage, const struct key_principal *key, enum usage_reason reason,
                                   int64_t wall_ms)
{
    struct writer *writer = writer_of(usage, &key->account);
    struct usage_refusal *entry = refusal_table_add(&writer->refused, key, reason, wall_ms);
    if (!entry)
        metric_add(METRIC_REFUSALS_DROPPED, 1);
    if (!entry || entry->count > 1)
        return NULL;
    if (reason == USAGE_REVOKED)
        write_soon(writer);
    return entry;
}

void usage_prefetch_first(const struct usage *usage, unsigned bucket, const struct id *key)
{
    usage_table_prefetch_slot(&writer_at(usage, bucket)->gathered, key);
}

void usage_prefetch_second(const struct usage *usage, unsigned bucket, const struct id *key)
{
    usage_table_prefetch_entry(&writer_at(usage, bucket)->gathered, key);
}

static void finish_drain(struct usage *usage)
{
    const struct callback drained = usage->drained;
    if (!drained.run)
        return;
    usage->drained = (struct callback){0};
    if (!usage->closed.run)
        CHECK(uv_timer_stop(&usage->deadline) == 0);
    callback_run(drained);
}

/* Everything that the writer gathered is written. */
static void writer_drained(struct writer *writer)
{
    struct usage *usage = writer->usage;
    writer->is_drained = true;
    for (unsigned i = 0; i < usage->count; i++)
        if (!usage->writers[i].is_drained)
            return;
    finish_drain(usage);
}

static void batch_done(void *arg, enum store_result result);

static size_t batch_most(const struct writer *writer)
{
    const size_t size = writer->writing.count / BATCHES_WANTED;
    if (size < BATCH_MIN)
        return BATCH_MIN;
    return size < USAGE_BATCH_MAX ? size : USAGE_BATCH_MAX;
}

static size_t next_refusals(const struct writer *writer)
{
    const size_t left = writer->refusing.count - writer->refusals_written;
    return left < USAGE_REFUSALS_BATCH_MAX ? left : USAGE_REFUSALS_BATCH_MAX;
}

static void send_batch(struct writer *writer)
{
    writer->batch = usage_table_batch(&writer->writing, writer->written, batch_most(writer));
    writer->batch_refusals = next_refusals(writer);
    const struct usage_batch batch = {
        .entries = writer->writing.entries + writer->written,
        .count = writer->batch,
        .refusals = writer->batch_refusals ? writer->refusing.entries + writer->refusals_written : NULL,
        .refusal_count = writer->batch_refusals,
    };
    writer->is_sending = true;
    writer->usage->open++;
    usage_store_flush(writer->store, text_of(writer->sender), writer->sequence, &batch, batch_done, writer);
}

static void swap_tables(struct writer *writer)
{
    const struct usage_table empty = writer->writing;
    writer->writing = writer->gathered;
    writer->gathered = empty;
    writer->written = 0;
    const struct refusal_table no_refusals = writer->refusing;
    writer->refusing = writer->refused;
    writer->refused = no_refusals;
    if (writer->is_urgent)
        writer->urgent_ns = clock_boot_ns();
    writer->is_urgent = false;
    writer->refusals_written = 0;
}

static void on_tick(uv_timer_t *timer)
{
    struct writer *writer = timer->data;
    if (!has_work(writer))
        swap_tables(writer);
    if (has_work(writer)) {
        send_batch(writer);
        return;
    }
    schedule(writer, writer->usage->interval_ms);
    if (writer->usage->drained.run)
        writer_drained(writer);
}

static void free_if_closed(struct usage *usage)
{
    if (usage->open)
        return;
    const struct callback closed = usage->closed;
    finish_drain(usage);
    for (unsigned i = 0; i < usage->count; i++) {
        struct writer *writer = &usage->writers[i];
        usage_table_finish(&writer->gathered);
        usage_table_finish(&writer->writing);
        refusal_table_finish(&writer->refused);
        refusal_table_finish(&writer->refusing);
    }
    free(usage);
    callback_run(closed);
}

static void batch_written(struct writer *writer)
{
    for (size_t i = 0; i < writer->batch; i++)
        metric_add(METRIC_USAGE_FLUSHED, writer->writing.entries[writer->written + i].uses);
    writer->written += writer->batch;
    writer->refusals_written += writer->batch_refusals;
    writer->sequence++;
    writer->backoff_ms = 0;
    if (writer->written < writer->writing.count || writer->refusals_written < writer->refusing.count)
        return;
    usage_table_clear(&writer->writing);
    refusal_table_clear(&writer->refusing);
    writer->written = writer->refusals_written = 0;
}

static uint32_t next_backoff(struct writer *writer)
{
    const uint32_t most = writer->usage->interval_ms,
                   doubled = writer->backoff_ms ? writer->backoff_ms * 2 : BACKOFF_FIRST_MS;
    writer->backoff_ms = doubled < most ? doubled : most;
    return writer->backoff_ms;
}

/* Whatever went wrong, the batch may have been counted. So it is sent again unchanged, under the same number. */
static void batch_done(void *arg, enum store_result result)
{
    struct writer *writer = arg;
    struct usage *usage = writer->usage;
    writer->is_sending = false;
    usage->open--;
    if (result == STORE_OK)
        batch_written(writer);
    if (usage->closed.run)
        free_if_closed(usage);
    else if (result != STORE_OK)
        schedule(writer, next_backoff(writer));
    else if (has_work(writer))
        send_batch(writer);
    else
        schedule(writer, wait_ms(writer));
}

static void on_deadline(uv_timer_t *timer)
{
    finish_drain(timer->data);
}

void usage_drain(struct usage *usage, uint32_t timeout_ms, void (*done)(void *arg), void *arg)
{
    REQUIRE(!usage->drained.run && !usage->closed.run);
    usage->drained = (struct callback){done, arg};
    CHECK(uv_timer_start(&usage->deadline, on_deadline, timeout_ms, 0) == 0);
    for (unsigned i = 0; i < usage->count; i++) {
        usage->writers[i].is_drained = false;
        if (!usage->writers[i].is_sending)
            schedule(&usage->writers[i], 0);
    }
}

static void timer_closed(uv_handle_t *handle)
{
    struct usage *usage = handle->data;
    usage->open--;
    free_if_closed(usage);
}

void usage_close(struct usage *usage, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!usage->closed.run);
    usage->closed = (struct callback){closed, arg};
    for (unsigned i = 0; i < usage->count; i++) {
        usage->writers[i].ticker.data = usage;
        uv_close((uv_handle_t *)&usage->writers[i].ticker, timer_closed);
    }
    uv_close((uv_handle_t *)&usage->deadline, timer_closed);
}
