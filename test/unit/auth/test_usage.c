#include "auth/usage.h"
#include "auth/usage_table_internal.h"
#include "base/clock.h"
#include "base/metrics.h"

#include "deadline.h"
#include "fake_store.h"
#include "kernel.h"
#include "leak_guard.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(usage, .fini = leak_guard);

enum { INTERVAL_MS = 5, DAY_MS = 86400000 };
static const int64_t NOON = INT64_C(20000) * DAY_MS + DAY_MS / 2;

struct fixture {
    uv_loop_t loop;
    struct store store;     /* the first partition */
    struct store others[3]; /* further ones */
    struct usage *usage;
    struct key_principal key;
    int drained;
    bool closed;
};

static struct key_principal make_key(enum key_mode mode)
{
    struct key_principal key = {.mode = mode};
    key.id = id_mint(ID_KEY, NOON);
    key.account = id_mint(ID_ACCOUNT, NOON);
    return key;
}

/* Another key of the same account. */
static struct key_principal make_another(const struct key_principal *key)
{
    struct key_principal another = *key;
    another.id = id_mint(ID_KEY, NOON);
    return another;
}

static void set_up_partitions(struct fixture *f, uint32_t interval_ms, unsigned count)
{
    const struct partitions partitions = {{&f->store, &f->others[0], &f->others[1], &f->others[2]}, count};
    memset(f, 0, sizeof *f);
    metric_values[METRIC_USAGE_FLUSHED] = metric_values[METRIC_USAGE_DROPPED] = 0;
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    f->key = make_key(MODE_LIVE);
    f->usage = usage_create(&f->loop, &partitions, interval_ms);
}

static void set_up_with(struct fixture *f, uint32_t interval_ms)
{
    set_up_partitions(f, interval_ms, 1);
}

static void set_up(struct fixture *f)
{
    set_up_with(f, INTERVAL_MS);
}

static void on_closed(void *arg)
{
    ((struct fixture *)arg)->closed = true;
}

static void tear_down(struct fixture *f)
{
    usage_close(f->usage, on_closed, f);
    cr_assert(test_loop_until_set(&f->loop, &f->closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f->loop));
}

static void wait_for_batch(struct fixture *f)
{
    cr_assert(test_loop_until_set(&f->loop, &f->store.flush_waits, PATIENCE_MS));
}

static void assert_entry(const struct usage_entry *entry, const struct key_principal *key, uint32_t uses,
                         int64_t last_ms)
{
    cr_assert_arr_eq(entry->key, id_chars(&key->id), ULID_TEXT_CHARS);
    cr_assert_arr_eq(entry->account, id_chars(&key->account), ULID_TEXT_CHARS);
    cr_assert_eq(entry->is_device, key->kind == KEY_DEVICE);
    cr_assert_eq(entry->is_live, key->mode == MODE_LIVE);
    cr_assert_eq(entry->uses, uses);
    cr_assert_eq((int64_t)entry->last_used_ms, last_ms);
}

Test(usage, sends_what_was_counted)
{
    struct fixture f;
    struct key_principal a = make_key(MODE_LIVE), b = make_key(MODE_TEST);
    b.kind = KEY_DEVICE;
    b.id = id_mint(ID_DEVICE, NOON);
    set_up(&f);
    usage_count(f.usage, &a, 1, NOON);
    usage_count(f.usage, &b, 1, NOON + 1);
    usage_count(f.usage, &a, 1, NOON + 5);
    usage_count(f.usage, &a, 1, NOON + 2); /* the clock stepped back, but the last use does not */
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 2);
    cr_assert_eq(f.store.sequence, 1);
    cr_assert_eq(strlen(f.store.sender), 32);
    assert_entry(&f.store.entries[0], &a, 3, NOON + 5);
    assert_entry(&f.store.entries[1], &b, 1, NOON + 1);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], 0);
    fake_store_answer_flush(&f.store, STORE_OK);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], 4);
    tear_down(&f);
    cr_assert_eq(f.store.flush_count, 1);
}

Test(usage, sends_nothing_when_nothing_was_used)
{
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE);
    set_up(&f);
    test_loop_for(&f.loop, 10 * INTERVAL_MS);
    cr_assert_eq(f.store.flush_count, 0);
    usage_count(f.usage, &key, 1, NOON);
    wait_for_batch(&f);
    fake_store_answer_flush(&f.store, STORE_OK);
    test_loop_for(&f.loop, 10 * INTERVAL_MS);
    cr_assert_eq(f.store.flush_count, 1);
    tear_down(&f);
}

Test(usage, sends_the_same_batch_again_until_it_is_written)
{
    static const enum store_result FAILURES[] = {STORE_UNKNOWN, STORE_UNAVAILABLE, STORE_REFUSED};
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE);
    char sender[64];
    set_up(&f);
    usage_count(f.usage, &key, 1, NOON);
    wait_for_batch(&f);
    memcpy(sender, f.store.sender, sizeof sender);
    for (size_t i = 0; i < 3; i++) {
        usage_count(f.usage, &key, 1, NOON + 1); /* belongs to the next batch, whatever happens to this one */
        fake_store_answer_flush(&f.store, FAILURES[i]);
        cr_assert_not(f.store.flush_waits, "it backs off");
        wait_for_batch(&f);
        cr_assert_eq(f.store.sequence, 1);
        cr_assert_str_eq(f.store.sender, sender);
        cr_assert_eq(f.store.entry_count, 1);
        assert_entry(&f.store.entries[0], &key, 1, NOON);
    }
    fake_store_answer_flush(&f.store, STORE_OK);
    wait_for_batch(&f);
    cr_assert_eq(f.store.sequence, 2);
    cr_assert_str_eq(f.store.sender, sender);
    assert_entry(&f.store.entries[0], &key, 3, NOON + 1);
    fake_store_answer_flush(&f.store, STORE_OK);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], 4);
    tear_down(&f);
}

Test(usage, each_sender_has_a_name_of_its_own)
{
    char first[64] = "";
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        const struct key_principal key = make_key(MODE_LIVE);
        set_up(&f);
        usage_count(f.usage, &key, 1, NOON);
        wait_for_batch(&f);
        cr_assert_str_neq(f.store.sender, first);
        memcpy(first, f.store.sender, sizeof first);
        fake_store_answer_flush(&f.store, STORE_OK);
        tear_down(&f);
    }
}

Test(usage, days_do_not_mix)
{
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE), other = make_key(MODE_TEST);
    const int64_t midnight = NOON - NOON % DAY_MS + DAY_MS;
    set_up(&f);
    usage_count(f.usage, &key, 1, midnight - 2);
    usage_count(f.usage, &key, 1, midnight - 1);
    usage_count(f.usage, &key, 1, midnight);
    usage_count(f.usage, &key, 1, midnight + 1);
    usage_count(f.usage, &key, 1, midnight + 2);
    usage_count(f.usage, &other, 1, midnight + 2);
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 1);
    assert_entry(&f.store.entries[0], &key, 2, midnight - 1);
    fake_store_answer_flush(&f.store, STORE_OK);
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 2);
    assert_entry(&f.store.entries[0], &key, 3, midnight + 2);
    assert_entry(&f.store.entries[1], &other, 1, midnight + 2);
    fake_store_answer_flush(&f.store, STORE_OK);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], 6);
    tear_down(&f);
}

Test(usage, many_keys_go_in_several_batches)
{
    enum { KEYS = 2 * 256 + 100 };
    static const size_t SIZES[] = {256, 256, 100};
    struct fixture f;
    struct key_principal *keys = calloc(KEYS, sizeof *keys);
    set_up(&f);
    keys[0] = make_key(MODE_LIVE);
    for (size_t i = 1; i < KEYS; i++)
        keys[i] = make_another(&keys[0]);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < KEYS; i++)
            usage_count(f.usage, &keys[i], 1, NOON + round);
    size_t seen = 0;
    for (uint64_t batch = 0; batch < 3; batch++) {
        wait_for_batch(&f);
        cr_assert_eq(f.store.entry_count, SIZES[batch]);
        cr_assert_eq(f.store.sequence, batch + 1);
        for (size_t i = 0; i < f.store.entry_count; i++)
            assert_entry(&f.store.entries[i], &keys[seen++], 3, NOON + 2);
        fake_store_answer_flush(&f.store, STORE_OK);
    }
    cr_assert_eq(seen, KEYS);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], 3 * KEYS);
    test_loop_for(&f.loop, 5 * INTERVAL_MS);
    cr_assert_eq(f.store.flush_count, 3);
    tear_down(&f);
    free(keys);
}

static void on_drained(void *arg)
{
    ((struct fixture *)arg)->drained++;
}

static bool is_drained(void *arg)
{
    return ((struct fixture *)arg)->drained > 0;
}

static void use_many(struct fixture *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct key_principal key = make_another(&f->key);
        usage_count(f->usage, &key, 1, NOON);
    }
}

static size_t write_batches(struct fixture *f, size_t count)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        wait_for_batch(f);
        entries += f->store.entry_count;
        fake_store_answer_flush(&f->store, STORE_OK);
    }
    return entries;
}

/* The more there is to write, the larger the batches, within bounds. */
Test(usage, batches_grow_with_what_is_to_be_written)
{
    enum { LONG_MS = 3600 * 1000, KEYS = 32 * 300 };
    struct fixture f;
    set_up_with(&f, LONG_MS);
    use_many(&f, KEYS);
    usage_drain(f.usage, PATIENCE_MS, on_drained, &f);
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 300);
    fake_store_answer_flush(&f.store, STORE_UNKNOWN);
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 300, "what is sent again is the same");
    cr_assert_eq(f.store.sequence, 1);
    use_many(&f, USAGE_TABLE_MAX - 1);
    cr_assert_eq(write_batches(&f, 32), KEYS);
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, USAGE_BATCH_MAX);
    cr_assert_eq(write_batches(&f, USAGE_TABLE_MAX / USAGE_BATCH_MAX), USAGE_TABLE_MAX - 1);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS));
    tear_down(&f);
}

/* So many different keys that the table would be full before the interval ends. */
Test(usage, what_fills_the_table_is_sent_early)
{
    enum { HALF = USAGE_TABLE_MAX / 2, LONG_MS = 3600 * 1000 };
    struct fixture f;
    set_up_with(&f, LONG_MS);
    use_many(&f, HALF - 1);
    test_loop_for(&f.loop, 10);
    cr_assert_eq(f.store.flush_count, 0);
    use_many(&f, 1);
    wait_for_batch(&f);
    /* Meanwhile the other half is used; it is sent as soon as the first is written. */
    use_many(&f, HALF);
    cr_assert_eq(write_batches(&f, USAGE_TABLE_MAX / USAGE_BATCH_MAX), USAGE_TABLE_MAX);
    test_loop_for(&f.loop, 10);
    cr_assert_not(f.store.flush_waits);
    cr_assert_eq(metric_values[METRIC_USAGE_FLUSHED], USAGE_TABLE_MAX);
    /* And again. */
    use_many(&f, HALF);
    cr_assert_eq(write_batches(&f, HALF / USAGE_BATCH_MAX), HALF);
    cr_assert_eq(metric_values[METRIC_USAGE_DROPPED], 0);
    tear_down(&f);
}

/* A failing store is not called more often because of that. */
Test(usage, a_full_table_does_not_cut_a_back_off_short)
{
    enum { INTERVAL_LONG_MS = 1000, BACK_OFF_MS = 50 };
    struct fixture f;
    set_up_with(&f, INTERVAL_LONG_MS);
    use_many(&f, 1);
    wait_for_batch(&f);
    use_many(&f, USAGE_TABLE_MAX / 2 - 1);
    uv_update_time(&f.loop);
    fake_store_answer_flush(&f.store, STORE_UNAVAILABLE);
    const uint64_t began_ms = uv_now(&f.loop);
    use_many(&f, 2);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    cr_assert(f.store.flush_count == 1 || uv_now(&f.loop) - began_ms >= BACK_OFF_MS);
    wait_for_batch(&f);
    cr_assert_eq(f.store.sequence, 1);
    fake_store_answer_flush(&f.store, STORE_OK);
    tear_down(&f);
}

/* Checks may still be answered while the node closes. */
Test(usage, a_full_table_does_nothing_more_when_closed)
{
    enum { LONG_MS = 3600 * 1000 };
    struct fixture f;
    set_up_with(&f, LONG_MS);
    use_many(&f, USAGE_TABLE_MAX / 2 - 1);
    usage_close(f.usage, on_closed, &f);
    use_many(&f, 1);
    cr_assert(test_loop_until_set(&f.loop, &f.closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f.loop));
    cr_assert_eq(f.store.flush_count, 0);
}

Test(usage, drains_what_is_gathered)
{
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE);
    set_up(&f);
    usage_count(f.usage, &key, 1, NOON);
    wait_for_batch(&f);
    usage_count(f.usage, &key, 1, NOON + 1);
    usage_drain(f.usage, PATIENCE_MS, on_drained, &f);
    cr_assert_eq(f.drained, 0);
    fake_store_answer_flush(&f.store, STORE_OK);
    wait_for_batch(&f);
    cr_assert_eq(f.drained, 0);
    fake_store_answer_flush(&f.store, STORE_OK);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS));
    tear_down(&f);
    cr_assert_eq(f.drained, 1);
    cr_assert_eq(f.store.flush_count, 2);
}

Test(usage, drains_nothing_at_once_but_later)
{
    struct fixture f;
    set_up(&f);
    usage_drain(f.usage, PATIENCE_MS, on_drained, &f);
    cr_assert_eq(f.drained, 0);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS / 10));
    tear_down(&f);
    cr_assert_eq(f.drained, 1);
}

Test(usage, a_drain_ends_at_its_deadline)
{
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE);
    set_up(&f);
    usage_count(f.usage, &key, 1, NOON);
    usage_drain(f.usage, 20, on_drained, &f);
    wait_for_batch(&f);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS));
    cr_assert(f.store.flush_waits);
    fake_store_answer_flush(&f.store, STORE_UNKNOWN);
    tear_down(&f);
    cr_assert_eq(f.drained, 1);
}

Test(usage, closing_waits_for_the_store_and_ends_a_drain)
{
    struct fixture f;
    const struct key_principal key = make_key(MODE_LIVE);
    set_up(&f);
    usage_count(f.usage, &key, 1, NOON);
    usage_drain(f.usage, PATIENCE_MS, on_drained, &f);
    wait_for_batch(&f);
    usage_close(f.usage, on_closed, &f);
    test_loop_for(&f.loop, 20);
    cr_assert_not(f.closed);
    fake_store_answer_flush(&f.store, STORE_UNAVAILABLE);
    cr_assert(f.closed);
    cr_assert_eq(f.drained, 1);
    cr_assert(test_loop_finish(&f.loop));
}

Test(usage, the_table_holds_65536_keys_and_no_more)
{
    struct usage_table table;
    usage_table_init(&table, USAGE_TABLE_MAX);
    struct key_principal first = make_key(MODE_TEST), key = first, last;
    cr_assert(usage_table_add(&table, &first, 1, NOON));
    for (size_t i = 1; i < USAGE_TABLE_MAX; i++) {
        key = make_key(MODE_LIVE);
        cr_assert(usage_table_add(&table, &key, 1, NOON));
    }
    cr_assert_eq(table.count, USAGE_TABLE_MAX);
    cr_assert(usage_table_add(&table, &first, 1, NOON + 1));
    cr_assert(usage_table_add(&table, &key, 1, NOON + 1));
    last = key;
    key = make_key(MODE_LIVE);
    cr_assert_not(usage_table_add(&table, &key, 1, NOON));
    cr_assert_eq(usage_table_batch(&table, 0, 1), 1);
    assert_entry(table.entries, &first, 2, NOON + 1);
    cr_assert_eq(usage_table_batch(&table, USAGE_TABLE_MAX - 1, USAGE_BATCH_MAX), 1);
    assert_entry(&table.entries[USAGE_TABLE_MAX - 1], &last, 2, NOON + 1);
    usage_table_clear(&table);
    cr_assert(usage_table_add(&table, &key, 1, NOON));
    cr_assert_eq(table.count, 1);
    cr_assert_eq(usage_table_batch(&table, 0, USAGE_BATCH_MAX), 1);
    assert_entry(table.entries, &key, 1, NOON);
    usage_table_finish(&table);
}

/* In Redis, an account's first key is as much work as nine keys. */
Test(usage, a_batch_has_fewer_keys_where_they_are_of_many_accounts)
{
    enum { KEYS = 400 };
    struct usage_table table;
    struct key_principal key = make_key(MODE_LIVE);

    usage_table_init(&table, USAGE_TABLE_MAX);
    for (int i = 0; i < KEYS; i++) {
        key = make_another(&key);
        cr_assert(usage_table_add(&table, &key, 1, NOON));
    }
    cr_assert_eq(usage_table_batch(&table, 0, 256), 256);
    cr_assert_eq(usage_table_batch(&table, 256, 256), KEYS - 256);
    usage_table_clear(&table);
    for (int i = 0; i < KEYS; i++) {
        key = make_another(&key);
        key.mode = i % 2 ? MODE_LIVE : MODE_TEST;
        cr_assert(usage_table_add(&table, &key, 1, NOON));
    }
    cr_assert_eq(usage_table_batch(&table, 0, 256), 256 - 8);
    usage_table_clear(&table);
    for (int i = 0; i < KEYS; i++) {
        key = make_key(MODE_LIVE);
        cr_assert(usage_table_add(&table, &key, 1, NOON));
    }
    cr_assert_eq(usage_table_batch(&table, 0, 9), 1);
    cr_assert_eq(usage_table_batch(&table, 0, 256), 29); /* 1 + 28 * 9 = 253 */
    usage_table_finish(&table);
}

/* They have the same hash. */
Test(usage, keys_whose_ids_end_alike_are_counted_apart)
{
    struct usage_table table;
    struct key_principal a = make_key(MODE_LIVE), b = a;
    uint8_t ulid[ULID_BYTES] = {0};

    id_from_bytes(ID_KEY, ulid, &a.id);
    ulid[10] = 1; /* in neither the first nor the last of its characters */
    id_from_bytes(ID_KEY, ulid, &b.id);
    usage_table_init(&table, USAGE_TABLE_MAX);
    cr_assert(usage_table_add(&table, &a, 1, NOON));
    cr_assert(usage_table_add(&table, &b, 1, NOON));
    cr_assert(usage_table_add(&table, &b, 1, NOON + 1));
    cr_assert_eq(usage_table_batch(&table, 0, 3), 2);
    assert_entry(&table.entries[0], &a, 1, NOON);
    assert_entry(&table.entries[1], &b, 2, NOON + 1);
    usage_table_finish(&table);
}

/* Ids of one millisecond are consecutive, and an account's keys are often made like that. They must not cluster. */
Test(usage, keys_that_were_made_together_lie_apart)
{
    enum { KEYS = 2000, RUN_MAX = 64 }; /* in 4,096 slots: such a run does not happen by chance */
    struct usage_table table;
    struct key_principal key;
    size_t run = 0, longest = 0;

    usage_table_init(&table, USAGE_TABLE_MAX);
    for (size_t i = 0; i < KEYS; i++) {
        key = make_key(MODE_LIVE);
        cr_assert(usage_table_add(&table, &key, 1, NOON));
    }
    for (size_t i = 0; i < table.capacity * 2; i++) {
        run = table.slots[i] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    cr_assert_lt(longest, RUN_MAX, "%zu slots in a row", longest);
    usage_table_finish(&table);
}

static void assert_refusal(const struct usage_refusal *refusal, const struct key_principal *key,
                           enum usage_reason reason, uint32_t count, int64_t first_ms)
{
    cr_assert_arr_eq(refusal->key, id_chars(&key->id), ULID_TEXT_CHARS);
    cr_assert_arr_eq(refusal->account, id_chars(&key->account), ULID_TEXT_CHARS);
    cr_assert_eq(refusal->reason, reason);
    cr_assert_eq(refusal->count, count);
    cr_assert_eq(refusal->first_ms, first_ms);
    cr_assert_eq(refusal->is_live, key->mode == MODE_LIVE);
}

Test(usage, sends_refusals_with_uses_and_alone)
{
    struct fixture f;
    set_up(&f);
    const struct key_principal b = make_another(&f.key);
    usage_count(f.usage, &b, 1, NOON);
    struct usage_refusal *first = usage_refuse(f.usage, &f.key, USAGE_REVOKED, NOON);
    cr_assert_not_null(first);
    snprintf(first->ip, sizeof first->ip, "192.0.2.1");
    cr_assert_null(usage_refuse(f.usage, &f.key, USAGE_REVOKED, NOON + 1), "it is known already");
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_SCOPE, NOON + 2));
    wait_for_batch(&f);
    cr_assert_eq(f.store.entry_count, 1);
    cr_assert_eq(f.store.refusal_count, 2);
    assert_refusal(&f.store.refusals[0], &f.key, USAGE_REVOKED, 2, NOON);
    assert_refusal(&f.store.refusals[1], &f.key, USAGE_SCOPE, 1, NOON + 2);
    cr_assert_str_eq(f.store.refusals[0].ip, "192.0.2.1");

    /* Later uses belong to the next batch; this one is sent again unchanged. */
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_REVOKED, NOON + DAY_MS));
    fake_store_answer_flush(&f.store, STORE_UNKNOWN);
    wait_for_batch(&f);
    cr_assert_eq(f.store.sequence, 1);
    cr_assert_eq(f.store.refusal_count, 2);
    fake_store_answer_flush(&f.store, STORE_OK);
    wait_for_batch(&f);
    cr_assert_eq(f.store.sequence, 2);
    cr_assert_eq(f.store.entry_count, 0);
    cr_assert_eq(f.store.refusal_count, 1);
    assert_refusal(&f.store.refusals[0], &f.key, USAGE_REVOKED, 1, NOON + DAY_MS);
    fake_store_answer_flush(&f.store, STORE_OK);
    tear_down(&f);
    cr_assert_eq(f.store.flush_count, 3);
}

Test(usage, refusals_of_many_keys_are_bounded)
{
    enum { ROOM = 1024, KEYS = ROOM + 100 };
    struct fixture f;
    const int64_t dropped = metric_values[METRIC_REFUSALS_DROPPED];
    size_t sent = 0, batches = 0;
    set_up_with(&f, 1000);
    for (size_t i = 0; i < KEYS; i++) {
        const struct key_principal key = make_another(&f.key);
        cr_assert_eq(usage_refuse(f.usage, &key, USAGE_REVOKED, NOON) != NULL, i < ROOM);
        cr_assert_null(usage_refuse(f.usage, &key, USAGE_REVOKED, NOON));
    }
    cr_assert_eq(metric_values[METRIC_REFUSALS_DROPPED] - dropped, 2 * (KEYS - ROOM));
    for (; sent < ROOM; batches++) {
        wait_for_batch(&f);
        cr_assert_gt(f.store.refusal_count, 0);
        for (size_t i = 0; i < f.store.refusal_count; i++)
            cr_assert_eq(f.store.refusals[i].count, 2);
        sent += f.store.refusal_count;
        fake_store_answer_flush(&f.store, STORE_OK);
    }
    cr_assert_eq(batches, ROOM / USAGE_REFUSALS_BATCH_MAX);
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_MODE, NOON), "there is room again");
    tear_down(&f);
}

enum { NEVER_MS = 3600000, RUN_MS = 50 };

Test(usage, use_of_a_revoked_key_waits_for_no_interval)
{
    struct fixture f;
    set_up_with(&f, NEVER_MS);
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_SCOPE, NOON));
    test_loop_for(&f.loop, RUN_MS);
    cr_assert_eq(f.store.flush_count, 0);
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_REVOKED, NOON));
    wait_for_batch(&f);
    cr_assert_eq(f.store.refusal_count, 2);
    fake_store_answer_flush(&f.store, STORE_OK);
    tear_down(&f);
}

Test(usage, use_of_a_revoked_key_goes_out_behind_the_batch_under_way)
{
    struct fixture f;
    set_up_with(&f, NEVER_MS);
    usage_count(f.usage, &f.key, 1, NOON);
    usage_drain(f.usage, RUN_MS, on_drained, &f);
    wait_for_batch(&f);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS)); /* at its deadline: nobody waits any more */
    cr_assert_not_null(usage_refuse(f.usage, &f.key, USAGE_REVOKED, NOON));
    fake_store_answer_flush(&f.store, STORE_OK);
    wait_for_batch(&f);
    cr_assert_eq(f.store.refusal_count, 1);
    fake_store_answer_flush(&f.store, STORE_OK);
    tear_down(&f);
}

/* Whoever has revoked keys causes a batch a second, however many requests he sends. */
Test(usage, use_of_revoked_keys_causes_few_batches)
{
    enum { KEYS = 20 };
    const uint64_t began_ns = clock_boot_ns();
    struct fixture f;
    set_up_with(&f, NEVER_MS);
    for (size_t i = 0; i < KEYS; i++) {
        const struct key_principal key = make_another(&f.key);
        cr_assert_not_null(usage_refuse(f.usage, &key, USAGE_REVOKED, NOON));
        test_loop_for(&f.loop, RUN_MS);
        if (f.store.flush_waits)
            fake_store_answer_flush(&f.store, STORE_OK);
    }
    const uint64_t seconds = (clock_boot_ns() - began_ns) / (1000 * CLOCK_NS_PER_MS);
    cr_assert(f.store.flush_count >= 1 && f.store.flush_count <= seconds + 2, "%d in %u s", (int)f.store.flush_count,
              (unsigned)seconds);
    tear_down(&f);
}

/* One that comes within that second waits for it to end, not for the interval. */
Test(usage, use_of_another_revoked_key_is_told_a_second_later)
{
    struct fixture f;
    set_up_with(&f, NEVER_MS);
    for (size_t i = 0; i < 2; i++) {
        const struct key_principal key = make_another(&f.key);
        cr_assert_not_null(usage_refuse(f.usage, &key, USAGE_REVOKED, NOON));
        wait_for_batch(&f);
        cr_assert_eq(f.store.flush_count, i + 1);
        cr_assert_eq(f.store.refusal_count, 1);
        fake_store_answer_flush(&f.store, STORE_OK);
    }
    tear_down(&f);
}

/* Several partitions */

enum { PARTITIONS = 4 };

static struct key_principal key_in(unsigned partition)
{
    struct key_principal key;
    do
        key = make_key(MODE_LIVE);
    while (bucket_of_account(&key.account) % PARTITIONS != partition);
    return key;
}

static struct store *store_at(struct fixture *f, unsigned partition)
{
    return partition == 0 ? &f->store : &f->others[partition - 1];
}

static void await_batch_of(struct fixture *f, unsigned partition)
{
    cr_assert(test_loop_until_set(&f->loop, &store_at(f, partition)->flush_waits, PATIENCE_MS));
}

Test(usage, each_partition_gets_the_uses_and_refusals_of_its_accounts)
{
    struct fixture f;
    struct key_principal keys[PARTITIONS], others[PARTITIONS];
    set_up_partitions(&f, INTERVAL_MS, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        keys[i] = key_in(i);
        others[i] = make_another(&keys[i]);
        for (unsigned uses = 0; uses <= i; uses++)
            usage_count(f.usage, &keys[i], 1, NOON);
        cr_assert_not_null(usage_refuse(f.usage, &others[i], USAGE_SCOPE, NOON + i));
        usage_prefetch_first(f.usage, bucket_of_account(&keys[i].account), &keys[i].id);
        usage_prefetch_second(f.usage, bucket_of_account(&keys[i].account), &keys[i].id);
    }
    for (unsigned i = 0; i < PARTITIONS; i++) {
        const struct store *store = store_at(&f, i);
        await_batch_of(&f, i);
        cr_assert_eq(store->entry_count, 1);
        assert_entry(&store->entries[0], &keys[i], i + 1, NOON);
        cr_assert_eq(store->refusal_count, 1);
        assert_refusal(&store->refusals[0], &others[i], USAGE_SCOPE, 1, NOON + i);
        cr_assert_eq(store->sequence, 1);
        for (unsigned before = 0; before < i; before++)
            cr_assert_str_neq(store->sender, store_at(&f, before)->sender);
    }
    for (unsigned i = 0; i < PARTITIONS; i++)
        fake_store_answer_flush(store_at(&f, i), STORE_OK);
    tear_down(&f);
    for (unsigned i = 0; i < PARTITIONS; i++)
        cr_assert_eq(store_at(&f, i)->flush_count, 1);
}

/* It does not answer for a while, then says that it failed; the others' uses are written meanwhile. */
Test(usage, a_partition_that_is_away_holds_up_no_other)
{
    enum { AWAY = 1, ROUNDS = 5 };
    struct fixture f;
    const struct key_principal lost = key_in(AWAY), kept = key_in(AWAY + 1);
    struct store *away;
    set_up_partitions(&f, INTERVAL_MS, PARTITIONS);
    away = store_at(&f, AWAY);
    usage_count(f.usage, &lost, 1, NOON);
    await_batch_of(&f, AWAY);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        usage_count(f.usage, &lost, 1, NOON + 1);
        usage_count(f.usage, &kept, 1, NOON);
        await_batch_of(&f, AWAY + 1);
        cr_assert_eq(store_at(&f, AWAY + 1)->sequence, round);
        fake_store_answer_flush(store_at(&f, AWAY + 1), STORE_OK);
        if (away->flush_waits && round > 1)
            fake_store_answer_flush(away, STORE_UNAVAILABLE);
    }
    await_batch_of(&f, AWAY);
    cr_assert_eq(away->sequence, 1);
    assert_entry(&away->entries[0], &lost, 1, NOON);
    fake_store_answer_flush(away, STORE_OK);
    await_batch_of(&f, AWAY);
    cr_assert_eq(away->sequence, 2);
    assert_entry(&away->entries[0], &lost, ROUNDS, NOON + 1);
    fake_store_answer_flush(away, STORE_OK);
    tear_down(&f);
}

Test(usage, a_drain_waits_for_every_partition)
{
    struct fixture f;
    const struct key_principal first = key_in(0), last = key_in(PARTITIONS - 1);
    set_up_partitions(&f, INTERVAL_MS, PARTITIONS);
    usage_count(f.usage, &first, 1, NOON);
    usage_count(f.usage, &last, 1, NOON);
    usage_drain(f.usage, PATIENCE_MS, on_drained, &f);
    await_batch_of(&f, 0);
    await_batch_of(&f, PARTITIONS - 1);
    fake_store_answer_flush(&f.store, STORE_OK);
    test_loop_for(&f.loop, 10 * INTERVAL_MS);
    cr_assert_eq(f.drained, 0);
    fake_store_answer_flush(store_at(&f, PARTITIONS - 1), STORE_OK);
    cr_assert(test_loop_until(&f.loop, is_drained, &f, PATIENCE_MS));
    cr_assert_eq(f.drained, 1);
    tear_down(&f);
}

Test(usage, closing_waits_for_the_batches_of_all_partitions)
{
    struct fixture f;
    set_up_partitions(&f, INTERVAL_MS, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        const struct key_principal key = key_in(i);
        usage_count(f.usage, &key, 1, NOON);
    }
    for (unsigned i = 0; i < PARTITIONS; i++)
        await_batch_of(&f, i);
    usage_close(f.usage, on_closed, &f);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        test_loop_for(&f.loop, INTERVAL_MS);
        cr_assert_not(f.closed);
        fake_store_answer_flush(store_at(&f, i), STORE_OK);
    }
    cr_assert(test_loop_until_set(&f.loop, &f.closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f.loop));
}
