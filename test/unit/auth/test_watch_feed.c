/* What watchers are told, when they are ended, and which barriers wait for them. The test plays the memberships and the
 * logs of two partitions. */
#include "auth/watch_feed.h"

#include "base/clock.h"
#include "fake_store.h"
#include "kernel.h"
#include "leak_guard.h"
#include "deadline.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { PARTS = 2, LEASE_MS = 200 };

static struct {
    uv_loop_t loop;
    struct partitions partitions;
    struct store stores[PARTS];
    struct membership members[PARTS];
    struct watch_feed *feed;
    uint32_t lease_ms;
    const struct membership_watch *watch;
    void *watch_args[PARTS];
    struct {
        unsigned count; /* so far */
        bool is_pending, is_newest;
        struct log_position after;
        invalidations_read *done;
        void *arg;
    } reads[PARTS];
    enum invalidation_kind kind; /* of the entries that are read */
    unsigned acknowledged;
    char barrier[BARRIER_NAME_CHARS + 1];
} w;

uint32_t membership_lease_ms(const struct membership *member)
{
    (void)member;
    return w.lease_ms;
}

/* It is renewed all the time. */
uint64_t membership_lease_left_ns(const struct membership *member)
{
    (void)member;
    return w.lease_ms * CLOCK_NS_PER_MS;
}

void membership_set_watch(struct membership *member, const struct membership_watch *watch, void *arg)
{
    w.watch = watch;
    w.watch_args[member - w.members] = arg;
}

void membership_acknowledge(struct membership *member, const struct due_acknowledgement *due)
{
    (void)member;
    w.acknowledged++;
    memcpy(w.barrier, due->barrier, sizeof w.barrier);
}

struct lease *store_lease(const struct store *store)
{
    (void)store;
    return NULL;
}

struct identity *lease_identity(struct lease *lease)
{
    (void)lease;
    return NULL;
}

const char *identity_known(const struct identity *identity)
{
    (void)identity;
    return "3031323334353637ffffffffffffffff";
}

void invalidation_log_read(struct store *store, const struct log_position *after, invalidations_read *done, void *arg)
{
    const size_t part = (size_t)(store - w.stores);

    cr_assert_not(w.reads[part].is_pending, "one at a time");
    w.reads[part].count++;
    w.reads[part].is_pending = true;
    w.reads[part].is_newest = !after;
    w.reads[part].after = after ? *after : (struct log_position){0};
    w.reads[part].done = done;
    w.reads[part].arg = arg;
}

static void start(uint32_t lease_ms, unsigned parts)
{
    struct membership *members[PARTS] = {&w.members[0], &w.members[1]};

    w.lease_ms = lease_ms;
    w.kind = INVALIDATION_SUSPENDED;
    w.partitions = (struct partitions){.stores = {&w.stores[0], &w.stores[1]}, .count = parts};
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.feed = watch_feed_create(&w.loop, &w.partitions, members);
}

TestSuite(watch_feed, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* Entries from one position to another; first 0: none. */
static void answer_read(unsigned part, enum store_result result, uint64_t first, uint64_t last, bool has_more)
{
    struct invalidation items[INVALIDATIONS_PER_PAGE] = {0};
    struct invalidation_page page = {.items = items, .last = {last, 0}, .has_more = has_more};

    for (uint64_t at = first; first > 0 && at <= last; at++)
        items[page.count++] = (struct invalidation){.position = {at, 0}, .kind = w.kind};
    cr_assert(w.reads[part].is_pending);
    w.reads[part].is_pending = false;
    w.reads[part].done(w.reads[part].arg, result, result == STORE_UNAVAILABLE ? NULL : &page);
}

static void answer_end(unsigned part, uint64_t last)
{
    answer_read(part, STORE_OK, 0, last, false);
}

static void hear(unsigned part)
{
    w.watch->heard(w.watch_args[part]);
}

/* Whether it is acknowledged at once. */
static bool hear_barrier(unsigned part, const char *name)
{
    struct due_acknowledgement due = {0};

    snprintf(due.barrier, sizeof due.barrier, "%s", name);
    hear(part);
    return !w.watch->defers(w.watch_args[part], &due);
}

struct told {
    struct watcher *watcher;
    struct watch_cursor cursor;
    char text[256];
    bool is_full, leaves; /* when it is told the next time */
    bool is_ended;
    unsigned ticks;
    uint32_t valid_ms; /* of the last one */
};

static void note(struct told *told, const char *what, const struct watch_cursor *cursor)
{
    size_t len = strlen(told->text);

    len += (size_t)snprintf(told->text + len, sizeof told->text - len, "%s", what);
    for (unsigned i = 0; i < cursor->count; i++)
        len += (size_t)snprintf(told->text + len, sizeof told->text - len, "%c%u", i ? ',' : ' ',
                                (unsigned)cursor->at[i].ms);
    snprintf(told->text + len, sizeof told->text - len, "; ");
    told->cursor = *cursor;
    if (told->leaves)
        watcher_remove(told->watcher);
}

static void on_began(void *arg, const struct watch_cursor *cursor)
{
    note(arg, "ready", cursor);
}

static void on_told(void *arg, const struct invalidation *invalidation, const struct watch_cursor *cursor)
{
    (void)invalidation;
    note(arg, "told", cursor);
}

static void on_gap(void *arg, const struct watch_cursor *cursor)
{
    note(arg, "gap", cursor);
}

static void on_flush(void *arg)
{
    const struct told *told = arg;

    cr_expect_not(told->leaves, "it has left");
}

static bool has_room(void *arg)
{
    const struct told *told = arg;

    return !told->is_full;
}

static void on_tick(void *arg, uint32_t valid_ms)
{
    struct told *told = arg;

    told->ticks++;
    told->valid_ms = valid_ms;
}

static void on_ended(void *arg, enum watch_end why)
{
    struct told *told = arg;

    told->is_ended = true;
    size_t len = strlen(told->text);

    snprintf(told->text + len, sizeof told->text - len, "%s", why == WATCH_LATE ? "late" : "draining");
}

static void add(struct told *told, const struct watch_cursor *since, bool acknowledges)
{
    static const struct watch_events EVENTS = {on_began, on_told, on_gap, on_flush, has_room, on_tick, on_ended};

    memset(told, 0, sizeof *told);
    told->watcher = watcher_add(w.feed, since, acknowledges, &EVENTS, told);
}

/* One of the only partition, at 5. */
static void begin(struct told *told, bool acknowledges)
{
    add(told, NULL, acknowledges);
    cr_assert(w.reads[0].is_newest);
    answer_end(0, 5);
    cr_assert_str_eq(told->text, "ready 5; ");
    told->text[0] = '\0';
}

static void expect_told(struct told *told, const char *text)
{
    cr_expect_str_eq(told->text, text);
    told->text[0] = '\0';
}

static bool is_ticked(void *arg)
{
    const struct told *told = arg;

    return told->ticks > 0;
}

static void await_tick(struct told *told)
{
    told->ticks = 0;
    cr_assert(test_loop_until(&w.loop, is_ticked, told, PATIENCE_MS));
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void finish(void)
{
    bool is_closed = false;

    watch_feed_drain(w.feed);
    watch_feed_close(w.feed, on_closed, &is_closed);
    for (unsigned i = 0; i < PARTS; i++)
        if (w.reads[i].is_pending)
            answer_read(i, STORE_UNAVAILABLE, 0, 0, false);
    cr_assert(test_loop_until_set(&w.loop, &is_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&w.loop));
}

/* Until then it is told nothing, and then everything since its place. */
Test(watch_feed, a_watcher_begins_with_a_place_in_all_partitions)
{
    struct told told;

    start(LEASE_MS, 2);
    add(&told, NULL, false);
    answer_end(0, 5);
    hear(0);
    cr_expect_not(w.reads[0].is_pending);
    await_tick(&told);
    cr_expect_eq(told.valid_ms, 0);
    expect_told(&told, "");
    answer_end(1, 7);
    expect_told(&told, "ready 5,7; ");
    await_tick(&told);
    cr_expect(log_position_equal(w.reads[0].after, (struct log_position){5, 0}) && w.reads[0].is_pending);
    answer_read(0, STORE_OK, 6, 8, false);
    expect_told(&told, "told 6,7; told 7,7; told 8,7; ");
    finish();
}

Test(watch_feed, watchers_that_are_equally_far_share_a_read)
{
    struct told first, same, behind;
    struct watch_cursor since;

    start(LEASE_MS, 1);
    begin(&first, false);
    begin(&same, false);
    since = first.cursor;
    since.at[0].ms = 3;
    w.reads[0].count = 0;
    hear(0);
    add(&behind, &since, false);
    answer_read(0, STORE_OK, 6, 6, false);
    expect_told(&first, "told 6; ");
    expect_told(&same, "told 6; ");
    expect_told(&behind, "");
    cr_assert_eq(w.reads[0].count, 2);
    answer_read(0, STORE_OK, 4, 5, true);
    expect_told(&behind, "ready 3; told 4; told 5; ");
    answer_read(0, STORE_OK, 6, 6, false);
    expect_told(&behind, "told 6; ");
    expect_told(&first, "");
    cr_expect_not(w.reads[0].is_pending);
    finish();
}

/* Neither does a read for the place of a new watcher tell others anything, nor one that was sent before a message. */
Test(watch_feed, each_message_is_read_for)
{
    struct told told, other;

    start(60000, 1);
    begin(&told, false);
    add(&other, NULL, false);
    hear(0);
    answer_end(0, 7);
    expect_told(&told, "");
    expect_told(&other, "ready 7; ");
    cr_expect_eq(w.reads[0].after.ms, 5);
    answer_read(0, STORE_OK, 6, 7, false);
    expect_told(&told, "told 6; told 7; ");
    cr_expect_eq(w.reads[0].after.ms, 7, "the other one has read nothing since the message");
    hear(0);
    answer_end(0, 7);
    cr_expect(w.reads[0].is_pending, "that message came behind the read");
    finish();
}

/* Scheduled revocations take effect without a message. */
Test(watch_feed, reads_without_a_message_too)
{
    struct told told;

    start(LEASE_MS, 1);
    begin(&told, false);
    do
        await_tick(&told);
    while (!w.reads[0].is_pending);
    answer_read(0, STORE_OK, 6, 6, false);
    expect_told(&told, "told 6; ");
    finish();
}

Test(watch_feed, a_gap_is_told_where_it_is)
{
    struct told told, strange;
    struct watch_cursor since;

    start(LEASE_MS, 1);
    begin(&told, false);
    since = told.cursor;
    hear(0);
    answer_read(0, STORE_REFUSED, 0, 9, false);
    expect_told(&told, "gap 9; ");
    w.kind = INVALIDATION_UNREADABLE;
    hear(0);
    answer_read(0, STORE_OK, 10, 11, false);
    expect_told(&told, "gap 10; gap 11; ");
    since.store[0]++;
    add(&strange, &since, false);
    cr_expect(w.reads[0].is_newest);
    answer_end(0, 11);
    expect_told(&strange, "ready 11; gap 11; ");
    finish();
}

/* The next tick reads again. */
Test(watch_feed, a_read_that_failed_is_repeated)
{
    struct told told;

    start(LEASE_MS, 1);
    begin(&told, false);
    hear(0);
    answer_read(0, STORE_UNAVAILABLE, 0, 0, false);
    hear(0);
    cr_expect_not(w.reads[0].is_pending);
    await_tick(&told);
    answer_read(0, STORE_OK, 6, 6, false);
    expect_told(&told, "told 6; ");
    finish();
}

Test(watch_feed, a_watcher_may_leave_while_it_is_told)
{
    struct told told, other;

    start(LEASE_MS, 1);
    begin(&told, true);
    begin(&other, false);
    told.leaves = true;
    hear(0);
    answer_read(0, STORE_OK, 6, 7, false);
    expect_told(&told, "told 6; ");
    expect_told(&other, "told 6; told 7; ");
    finish();
}

/* Of what was heard since, nothing may count as told for longer than a lease, however long the node's lease is renewed.
 */
Test(watch_feed, what_is_valid_counts_from_the_last_whole_read)
{
    enum { LONG_MS = 2000 }; /* a stall leaves something of it */
    struct told told;

    start(LONG_MS, 1);
    begin(&told, true);
    await_tick(&told);
    cr_expect_eq(told.valid_ms, LONG_MS);
    hear(0);
    do {
        await_tick(&told);
        cr_expect_lt(told.valid_ms, LONG_MS);
    } while (told.valid_ms > 0);
    answer_read(0, STORE_OK, 6, 6, true);
    await_tick(&told);
    cr_expect_eq(told.valid_ms, 0, "there is more");
    answer_read(0, STORE_OK, 7, 7, false);
    await_tick(&told);
    cr_expect_gt(told.valid_ms, 0);
    finish();
}

/* The one of them that is behind counts: for each partition what is left of the lease, or what was told last. */
Test(watch_feed, what_is_valid_is_so_in_all_partitions)
{
    struct told told;

    start(60000, 2);
    add(&told, NULL, true);
    answer_end(0, 5);
    answer_end(1, 5);
    hear(0);
    await_tick(&told);
    cr_expect(told.valid_ms > 0 && told.valid_ms < 60000, "%u", told.valid_ms);
    finish();
}

Test(watch_feed, a_barrier_waits_for_all_who_acknowledge)
{
    struct told told, other;
    struct watch_cursor before;

    start(60000, 1);
    cr_expect(hear_barrier(0, "first"), "nobody is there");
    begin(&told, true);
    begin(&other, true);
    before = told.cursor;
    hear(0);
    cr_expect_not(hear_barrier(0, "second"));
    answer_read(0, STORE_OK, 6, 6, false);
    cr_expect(watcher_acknowledge(told.watcher, &told.cursor) && watcher_acknowledge(other.watcher, &other.cursor));
    cr_expect_eq(w.acknowledged, 0, "that read was sent before the message");
    answer_read(0, STORE_OK, 7, 7, true);
    cr_expect(watcher_acknowledge(told.watcher, &told.cursor) && watcher_acknowledge(other.watcher, &other.cursor));
    cr_expect_eq(w.acknowledged, 0, "there is more");
    answer_read(0, STORE_OK, 8, 8, false);
    cr_expect(watcher_acknowledge(told.watcher, &told.cursor) && watcher_acknowledge(told.watcher, &before));
    await_tick(&other);
    cr_expect_eq(w.acknowledged, 0, "the other one has not");
    cr_expect_not(other.is_ended, "it has time");
    cr_expect(watcher_acknowledge(other.watcher, &other.cursor));
    cr_expect_eq(w.acknowledged, 1);
    cr_expect_str_eq(w.barrier, "second");
    finish();
}

Test(watch_feed, takes_no_acknowledgement_of_what_was_not_told)
{
    struct told told, other, early;
    struct watch_cursor cursor;

    start(60000, 1);
    begin(&told, true);
    begin(&other, false);
    cr_expect_not(watcher_acknowledge(other.watcher, &other.cursor), "nobody waits for this one");
    cursor = told.cursor;
    add(&early, &cursor, true);
    cr_expect_not(watcher_acknowledge(early.watcher, &cursor), "it has not begun");
    cursor.at[0].sequence++;
    cr_expect_not(watcher_acknowledge(told.watcher, &cursor));
    cursor = told.cursor;
    cursor.store[0]++;
    cr_expect_not(watcher_acknowledge(told.watcher, &cursor), "of another store");
    cr_expect(watcher_acknowledge(told.watcher, &told.cursor));
    finish();
}

/* It does not know what the watcher still holds. */
Test(watch_feed, a_watcher_that_left_is_waited_for)
{
    struct told told;

    start(60000, 1);
    begin(&told, true);
    cr_expect_not(hear_barrier(0, "first"));
    watcher_remove(told.watcher);
    cr_expect_not(hear_barrier(0, "second"));
    answer_end(0, 6);
    cr_expect_eq(w.acknowledged, 0);
    finish();
}

Test(watch_feed, a_watcher_that_left_is_waited_for_once)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct told told;

    start(LEASE_MS, 1);
    begin(&told, true);
    watcher_remove(told.watcher);
    while (!hear_barrier(0, "next"))
        cr_assert_gt(deadline_left_ms(deadline), 0);
    finish();
}

static bool is_ended(void *arg)
{
    const struct told *told = arg;

    return told->is_ended;
}

/* One that was told and says nothing, or does not read. */
Test(watch_feed, ends_a_watcher_that_is_late)
{
    struct told silent, full, prompt;

    start(LEASE_MS, 1);
    begin(&prompt, true);
    begin(&silent, true);
    cr_expect_not(hear_barrier(0, "first"));
    answer_read(0, STORE_OK, 6, 6, false);
    cr_expect(watcher_acknowledge(prompt.watcher, &prompt.cursor));
    cr_assert(test_loop_until(&w.loop, is_ended, &silent, PATIENCE_MS));
    expect_told(&silent, "told 6; late");
    watcher_remove(prompt.watcher);
    expect_told(&prompt, "told 6; ");
    test_loop_for(&w.loop, 2 * watch_feed_wait_ms(w.feed));
    if (w.reads[0].is_pending)
        answer_end(0, 6);
    add(&full, NULL, true);
    answer_end(0, 6);
    full.is_full = true;
    full.text[0] = '\0';
    cr_expect_not(hear_barrier(0, "second"));
    cr_expect_not(w.reads[0].is_pending);
    cr_assert(test_loop_until(&w.loop, is_ended, &full, PATIENCE_MS));
    expect_told(&full, "late");
    finish();
}

/* It could not be told, so its barrier is given up, and it stays. */
Test(watch_feed, keeps_a_watcher_that_could_not_be_told)
{
    struct told told;

    start(LEASE_MS, 1);
    begin(&told, true);
    cr_expect_not(hear_barrier(0, "first"));
    test_loop_for(&w.loop, 2 * watch_feed_wait_ms(w.feed));
    answer_read(0, STORE_OK, 6, 6, false);
    expect_told(&told, "told 6; ");
    cr_expect(watcher_acknowledge(told.watcher, &told.cursor));
    cr_expect_eq(w.acknowledged, 0, "its revoker has waited");
    finish();
}
