#include "auth/watch_feed.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "lease/lease.h"
#include "watch_waits_internal.h"

#include <stdlib.h>

enum {
    TICKS_PER_LEASE = 4,
    TICK_MIN_MS = 20,
    TICK_MAX_MS = 1000,
};

/* One partition. What is heard is counted, so that a read shows how much of it is behind a watcher: all that was heard
 * before the read was sent. */
struct feed_part {
    struct watch_feed *feed;
    struct store *store;
    struct membership *member;
    unsigned number;
    uint64_t heard;                   /* at least 1, so that a new watcher has something to read */
    bool is_reading;                  /* the log, and then: */
    bool reads_newest;                /* where it ends */
    struct log_position reading_from; /* or what came after this */
    uint64_t reading_heard;           /* when the read was sent, at: */
    uint64_t reading_since_ns;
    bool has_failed; /* the last read; the next tick tries again */
};

/* What a watcher has of one partition. */
struct watcher_part {
    bool is_placed; /* its position is known */
    uint64_t seen;  /* everything up to that number of feed_part.heard has been told: what was heard until: */
    uint64_t seen_ns;
    struct log_position acknowledged;
};

struct watcher {
    struct list in_feed;
    struct watch_feed *feed;
    const struct watch_events *events;
    void *arg;
    char id[WATCHER_ID_CHARS + 1];
    bool acknowledges;
    bool has_begun;
    uint64_t number; /* in the order in which they began, from 1 */
    bool has_gap;    /* to be told when it begins */
    bool is_removed;
    unsigned unplaced; /* partitions in which it has no position yet */
    struct watch_cursor cursor;
    struct watcher_part parts[];
};

struct watch_feed {
    uv_timer_t ticker;
    const struct partitions *partitions;
    struct list watchers, removed;
    unsigned calls; /* on the stack: watchers that are removed meanwhile are freed afterwards */
    uint32_t tick_ms, wait_ms;
    unsigned ticks;
    unsigned reads;             /* under way */
    uint64_t begun;             /* watchers, ever */
    unsigned acknowledging;     /* watchers that have begun and acknowledge */
    uint64_t withheld_until_ns; /* no barrier is acknowledged before */
    struct watch_waits waits;
    bool is_closing, is_ticker_closed;
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned count;
    struct feed_part parts[];
};

static void on_heard(void *arg);
static bool on_barrier(void *arg, const struct due_acknowledgement *due);
static void on_tick(uv_timer_t *ticker);
static void log_read(void *arg, enum store_result result, const struct invalidation_page *page);

static uint32_t between(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

struct watch_feed *watch_feed_create(uv_loop_t *loop, const struct partitions *partitions,
                                     struct membership *const *members)
{
    static const struct membership_watch WATCH = {on_heard, on_barrier};
    unsigned count = partitions_count(partitions);
    struct watch_feed *feed = mem_alloc(sizeof *feed + count * sizeof *feed->parts);
    uint32_t lease_ms = membership_lease_ms(members[0]);

    CHECK(lease_ms > 0 && uv_timer_init(loop, &feed->ticker) == 0);
    feed->ticker.data = feed;
    feed->partitions = partitions;
    feed->count = count;
    feed->tick_ms = between(lease_ms / TICKS_PER_LEASE, TICK_MIN_MS, TICK_MAX_MS);
    feed->wait_ms = barrier_wait_ms(lease_ms);
    list_init(&feed->watchers);
    list_init(&feed->removed);
    for (unsigned i = 0; i < count; i++) {
        feed->parts[i] = (struct feed_part){
            .feed = feed, .store = partitions_at(partitions, i), .member = members[i], .number = i, .heard = 1};
        membership_set_watch(members[i], &WATCH, &feed->parts[i]);
    }
    return feed;
}

uint32_t watch_feed_wait_ms(const struct watch_feed *feed)
{
    return feed->wait_ms;
}

/* Watchers */

static void enter(struct watch_feed *feed)
{
    feed->calls++;
}

static void leave(struct watch_feed *feed)
{
    struct list *node;

    if (--feed->calls > 0)
        return;
    while ((node = list_first(&feed->removed))) {
        list_remove(node);
        free(LIST_ENTRY(node, struct watcher, in_feed));
    }
}

static void store_name(const struct watch_feed *feed, uint8_t ret_name[WATCH_STORE_BYTES])
{
    const char *id = identity_known(lease_identity(store_lease(partitions_at(feed->partitions, 0))));

    enum { CHARS = 2 * WATCH_STORE_BYTES };

    if (strlen(id) < CHARS || !decode_hex((struct text){id, CHARS}, ret_name, WATCH_STORE_BYTES))
        memset(ret_name, 0, WATCH_STORE_BYTES);
}

static void pump(struct feed_part *part);

static void pump_all(struct watch_feed *feed)
{
    for (unsigned i = 0; i < feed->count; i++)
        pump(&feed->parts[i]);
}

static void name_watcher(struct watcher *watcher)
{
    uint8_t bytes[WATCHER_ID_CHARS / 2];
    struct buf out;

    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, watcher->id, WATCHER_ID_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
}

static void place(struct watcher *watcher, const struct watch_cursor *since)
{
    for (unsigned i = 0; i < watcher->cursor.count; i++) {
        watcher->cursor.at[i] = since->at[i];
        watcher->parts[i].is_placed = true;
    }
    watcher->unplaced = 0;
}

struct watcher *watcher_add(struct watch_feed *feed, const struct watch_cursor *since, bool acknowledges,
                            const struct watch_events *events, void *arg)
{
    struct watcher *watcher = mem_alloc(sizeof *watcher + feed->count * sizeof *watcher->parts);

    CHECK(!feed->is_closing);
    watcher->feed = feed;
    watcher->events = events;
    watcher->arg = arg;
    watcher->acknowledges = acknowledges;
    watcher->cursor.count = feed->count;
    watcher->unplaced = feed->count;
    store_name(feed, watcher->cursor.store);
    name_watcher(watcher);
    watcher->has_gap = since && !watch_cursor_fits(since, &watcher->cursor);
    if (since && !watcher->has_gap)
        place(watcher, since);
    list_append(&feed->watchers, &watcher->in_feed);
    metric_add(METRIC_WATCHERS, 1);
    if (!uv_is_active((uv_handle_t *)&feed->ticker))
        CHECK(uv_timer_start(&feed->ticker, on_tick, feed->tick_ms, feed->tick_ms) == 0);
    pump_all(feed);
    return watcher;
}

static void withhold(struct watcher *watcher);

void watcher_remove(struct watcher *watcher)
{
    struct watch_feed *feed = watcher->feed;

    CHECK(!watcher->is_removed);
    watcher->is_removed = true;
    list_remove(&watcher->in_feed);
    metric_add(METRIC_WATCHERS, -1);
    if (list_empty(&feed->watchers))
        uv_timer_stop(&feed->ticker);
    enter(feed);
    list_append(&feed->removed, &watcher->in_feed);
    if (watcher->has_begun && watcher->acknowledges)
        withhold(watcher);
    leave(feed);
}

struct watcher *watcher_find(struct watch_feed *feed, struct text id)
{
    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = node->next) {
        struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        if (text_equal(text_of(watcher->id), id))
            return watcher;
    }
    return NULL;
}

void watcher_resume(struct watcher *watcher)
{
    pump_all(watcher->feed);
}

const char *watcher_id(const struct watcher *watcher)
{
    return watcher->id;
}

static void end_watcher(struct watcher *watcher, enum watch_end why)
{
    struct watch_feed *feed = watcher->feed;

    enter(feed);
    watcher_remove(watcher);
    watcher->events->ended(watcher->arg, why);
    leave(feed);
}

/* Acknowledging */

static struct watch_wait wait_for(const struct feed_part *part, const struct due_acknowledgement *due)
{
    return (struct watch_wait){.partition = part->number,
                               .heard = part->heard,
                               .watchers = part->feed->begun,
                               .until_ns = clock_boot_ns() + part->feed->wait_ms * CLOCK_NS_PER_MS,
                               .due = *due};
}

/* Without an acknowledgement, the revocation waits W for this node, as it would for the watcher's own lease. */
static bool on_barrier(void *arg, const struct due_acknowledgement *due)
{
    struct feed_part *part = arg;
    struct watch_feed *feed = part->feed;
    const struct watch_wait wait = wait_for(part, due);

    if (clock_boot_ns() < feed->withheld_until_ns)
        return true;
    if (feed->acknowledging == 0)
        return false;
    watch_waits_add(&feed->waits, &wait);
    return true;
}

static bool covers(const struct watcher *watcher, const struct watch_wait *wait)
{
    return !watcher->acknowledges || !watcher->has_begun ||
           watch_wait_covers(wait, watcher->number, watcher->parts[wait->partition].acknowledged);
}

static bool all_cover(void *arg, const struct watch_wait *wait)
{
    struct watch_feed *feed = arg;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = node->next)
        if (!covers(LIST_ENTRY(node, struct watcher, in_feed), wait))
            return false;
    return true;
}

static void acknowledge(void *arg, const struct watch_wait *wait)
{
    const struct watch_feed *feed = arg;

    membership_acknowledge(feed->parts[wait->partition].member, &wait->due);
}

static void settle_waits(struct watch_feed *feed)
{
    watch_waits_remove(&feed->waits, all_cover, acknowledge, feed);
}

static bool is_not_covered(void *arg, const struct watch_wait *wait)
{
    return !covers(arg, wait);
}

static void give_up_wait(UNUSED void *arg, UNUSED const struct watch_wait *wait)
{
}

/* Nobody knows what a watcher that is gone still holds. Until it must have ended that by its own rule, revocations wait
 * as for a node that is gone. */
static void withhold(struct watcher *watcher)
{
    struct watch_feed *feed = watcher->feed;

    feed->acknowledging--;
    feed->withheld_until_ns = clock_boot_ns() + feed->wait_ms * CLOCK_NS_PER_MS;
    watch_waits_remove(&feed->waits, is_not_covered, give_up_wait, watcher);
    settle_waits(feed);
}

static bool was_told(const struct watcher *watcher, const struct watch_cursor *cursor)
{
    if (!watcher->has_begun || !watch_cursor_fits(cursor, &watcher->cursor))
        return false;
    for (unsigned i = 0; i < cursor->count; i++)
        if (log_position_is_after(cursor->at[i], watcher->cursor.at[i]))
            return false;
    return true;
}

bool watcher_acknowledge(struct watcher *watcher, const struct watch_cursor *cursor)
{
    if (!watcher->acknowledges || !was_told(watcher, cursor))
        return false;
    for (unsigned i = 0; i < cursor->count; i++)
        if (log_position_is_after(cursor->at[i], watcher->parts[i].acknowledged))
            watcher->parts[i].acknowledged = cursor->at[i];
    settle_waits(watcher->feed);
    return true;
}

/* Reading */

static void on_heard(void *arg)
{
    struct feed_part *part = arg;

    part->heard++;
    pump(part);
}

/* A new watcher is told nothing of one partition before it has a place in all of them. */
static bool wants_to_read(const struct watcher *watcher, const struct feed_part *part)
{
    const struct watcher_part *own = &watcher->parts[part->number];

    return own->seen < part->heard && (!own->is_placed || watcher->unplaced == 0) &&
           watcher->events->has_room(watcher->arg);
}

/* For the first watcher that is behind. Whoever has come as far gets the same. */
static void pump(struct feed_part *part)
{
    struct watch_feed *feed = part->feed;

    if (part->is_reading || part->has_failed || feed->is_closing)
        return;
    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = node->next) {
        const struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        if (!wants_to_read(watcher, part))
            continue;
        part->is_reading = true;
        part->reads_newest = !watcher->parts[part->number].is_placed;
        part->reading_from = watcher->cursor.at[part->number];
        part->reading_heard = part->heard;
        part->reading_since_ns = clock_boot_ns();
        feed->reads++;
        invalidation_log_read(part->store, part->reads_newest ? NULL : &part->reading_from, log_read, part);
        return;
    }
}

/* Whether the read that has ended serves this watcher, too. */
static bool is_read_for(const struct watcher *watcher, const struct feed_part *part)
{
    if (!wants_to_read(watcher, part) || watcher->parts[part->number].is_placed == part->reads_newest)
        return false;
    return part->reads_newest || log_position_equal(watcher->cursor.at[part->number], part->reading_from);
}

static void tell_gap(struct watcher *watcher)
{
    if (!watcher->is_removed)
        watcher->events->gap(watcher->arg, &watcher->cursor);
}

static void begin_if_placed(struct watcher *watcher)
{
    if (watcher->has_begun || watcher->unplaced > 0)
        return;
    watcher->has_begun = true;
    watcher->number = ++watcher->feed->begun;
    watcher->feed->acknowledging += watcher->acknowledges;
    for (unsigned i = 0; i < watcher->cursor.count; i++)
        watcher->parts[i].acknowledged = watcher->cursor.at[i];
    watcher->events->began(watcher->arg, &watcher->cursor);
    if (watcher->has_gap)
        tell_gap(watcher);
}

static void tell_entries(struct watcher *watcher, unsigned number, const struct invalidation_page *page)
{
    for (size_t i = 0; i < page->count && !watcher->is_removed; i++) {
        const struct invalidation *entry = &page->items[i];

        watcher->cursor.at[number] = entry->position;
        if (entry->kind == INVALIDATION_UNREADABLE)
            tell_gap(watcher);
        else
            watcher->events->told(watcher->arg, entry, &watcher->cursor);
    }
}

static void tell_page(struct watcher *watcher, const struct feed_part *part, const struct invalidation_page *page,
                      bool is_gap)
{
    struct watcher_part *own = &watcher->parts[part->number];

    begin_if_placed(watcher);
    tell_entries(watcher, part->number, page);
    watcher->cursor.at[part->number] = page->last;
    watcher->unplaced -= !own->is_placed;
    own->is_placed = true;
    if (!page->has_more) {
        own->seen = part->reading_heard;
        own->seen_ns = part->reading_since_ns;
    }
    if (is_gap)
        tell_gap(watcher);
    if (!watcher->is_removed)
        begin_if_placed(watcher);
    if (!watcher->is_removed)
        watcher->events->flush(watcher->arg);
}

static void tell_read(struct feed_part *part, const struct invalidation_page *page, bool is_gap)
{
    struct watch_feed *feed = part->feed;
    struct list *next;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = next) {
        struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        next = node->next;
        if (is_read_for(watcher, part))
            tell_page(watcher, part, page, is_gap);
    }
}

static void try_end(struct watch_feed *feed);

static void log_read(void *arg, enum store_result result, const struct invalidation_page *page)
{
    struct feed_part *part = arg;
    struct watch_feed *feed = part->feed;

    part->is_reading = false;
    feed->reads--;
    part->has_failed = !page;
    enter(feed);
    if (page)
        tell_read(part, page, result == STORE_REFUSED);
    leave(feed);
    if (page && !page->has_more)
        watch_waits_place(&feed->waits, part->number, part->reading_heard, page->last);
    settle_waits(feed);
    pump(part);
    try_end(feed);
}

/* Ticks */

/* No revocation is answered before this node has heard of it or its lease has ended. One that was heard but not told
 * yet counts from when it was heard at the earliest: a revocation waits for a watcher that acknowledges longer than a
 * lease. */
static uint64_t valid_ns_of(const struct watcher *watcher, const struct feed_part *part)
{
    const struct watcher_part *own = &watcher->parts[part->number];
    uint64_t lease_ns = membership_lease_left_ns(part->member), now_ns = clock_boot_ns();
    uint64_t seen_until_ns = own->seen_ns + membership_lease_ms(part->member) * CLOCK_NS_PER_MS;

    if (own->seen == part->heard)
        return lease_ns;
    if (seen_until_ns <= now_ns)
        return 0;
    return seen_until_ns - now_ns < lease_ns ? seen_until_ns - now_ns : lease_ns;
}

static uint32_t valid_ms_of(const struct watcher *watcher)
{
    const struct watch_feed *feed = watcher->feed;
    uint64_t least_ns = UINT64_MAX;

    for (unsigned i = 0; i < feed->count; i++) {
        uint64_t valid_ns = valid_ns_of(watcher, &feed->parts[i]);

        least_ns = valid_ns < least_ns ? valid_ns : least_ns;
    }
    return watcher->has_begun ? (uint32_t)(least_ns / CLOCK_NS_PER_MS) : 0;
}

static void tick_watchers(struct watch_feed *feed)
{
    struct list *next;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = next) {
        const struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        next = node->next;
        watcher->events->tick(watcher->arg, valid_ms_of(watcher));
    }
}

static bool is_over(UNUSED void *arg, const struct watch_wait *wait)
{
    return clock_boot_ns() >= wait->until_ns;
}

/* Whether it had the chance to acknowledge: it could be told, unless it does not read. */
static bool is_late(const struct watcher *watcher)
{
    const struct watch_waits *waits = &watcher->feed->waits;

    for (size_t i = 0; i < waits->count; i++) {
        const struct watch_wait *wait = &waits->items[i];

        if (is_over(NULL, wait) && !covers(watcher, wait) &&
            (wait->is_placed || !watcher->events->has_room(watcher->arg)))
            return true;
    }
    return false;
}

/* A watcher that is late holds up revocations once, and is then disconnected. */
static void end_late_watchers(struct watch_feed *feed)
{
    struct list *next;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = next) {
        struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        next = node->next;
        if (!is_late(watcher))
            continue;
        metric_add(METRIC_WATCHERS_LATE, 1);
        end_watcher(watcher, WATCH_LATE);
    }
    watch_waits_remove(&feed->waits, is_over, give_up_wait, NULL);
}

static void on_tick(uv_timer_t *ticker)
{
    struct watch_feed *feed = ticker->data;

    enter(feed);
    end_late_watchers(feed);
    tick_watchers(feed);
    leave(feed);
    /* No message tells that the time of a scheduled revocation has come: it is only logged. */
    const bool is_poll = ++feed->ticks % TICKS_PER_LEASE == 0;
    for (unsigned i = 0; i < feed->count; i++) {
        struct feed_part *part = &feed->parts[i];

        part->heard += is_poll;
        part->has_failed = false;
        pump(part);
    }
}

/* The end */

void watch_feed_drain(struct watch_feed *feed)
{
    struct list *node;

    if (!feed)
        return;
    while ((node = list_first(&feed->watchers)))
        end_watcher(LIST_ENTRY(node, struct watcher, in_feed), WATCH_DRAINING);
}

static void try_end(struct watch_feed *feed)
{
    void (*closed)(void *arg) = feed->closed;
    void *arg = feed->closed_arg;

    if (!feed->is_closing || feed->reads > 0 || !feed->is_ticker_closed)
        return;
    free(feed);
    closed(arg);
}

static void on_ticker_closed(uv_handle_t *handle)
{
    struct watch_feed *feed = handle->data;

    feed->is_ticker_closed = true;
    try_end(feed);
}

void watch_feed_close(struct watch_feed *feed, void (*closed)(void *arg), void *arg)
{
    CHECK(!feed->is_closing && list_empty(&feed->watchers));
    feed->is_closing = true;
    feed->closed = closed;
    feed->closed_arg = arg;
    for (unsigned i = 0; i < feed->count; i++)
        membership_set_watch(feed->parts[i].member, NULL, NULL);
    uv_close((uv_handle_t *)&feed->ticker, on_ticker_closed);
}
