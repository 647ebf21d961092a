#include "auth/watch_feed.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "lease/lease.h"
#include "watch_feed_internal.h"

#include <stdlib.h>

enum {
    TICKS_PER_LEASE = 4,
    TICK_MIN_MS = 20,
    TICK_MAX_MS = 1000,
};

static void on_heard(void *arg);
static void on_tick(uv_timer_t *ticker);
static void log_read(void *arg, enum store_result result, const struct invalidation_page *page);

static uint32_t between(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

struct watch_feed *watch_feed_create(uv_loop_t *loop, const struct partitions *partitions,
                                     struct membership *const *members)
{
    static const struct membership_watch WATCH = {on_heard, watch_on_barrier};
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

    INVARIANT(feed->calls > 0);
    if (--feed->calls > 0)
        return;
    while ((node = list_take(&feed->removed)))
        free(LIST_ENTRY(node, struct watcher, in_feed));
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

    REQUIRE(!feed->is_closing);
    watcher->feed = feed;
    watcher->events = events;
    watcher->arg = arg;
    watcher->acknowledges = acknowledges;
    watcher->cursor.count = feed->count;
    watcher->unplaced = feed->count;
    store_name(feed, watcher->cursor.store);
    random_hex(watcher->id, sizeof watcher->id);
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

void watcher_remove(struct watcher *watcher)
{
    struct watch_feed *feed = watcher->feed;

    REQUIRE(!watcher->is_removed);
    watcher->is_removed = true;
    list_remove(&watcher->in_feed);
    metric_add(METRIC_WATCHERS, -1);
    if (list_empty(&feed->watchers))
        uv_timer_stop(&feed->ticker);
    enter(feed);
    list_append(&feed->removed, &watcher->in_feed);
    if (watcher->has_begun && watcher->acknowledges)
        watch_withhold(watcher);
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
            watcher->events->event(watcher->arg, entry, &watcher->cursor);
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
    watch_settle_waits(feed);
    pump(part);
    try_end(feed);
}

/* Ticks */

static void tick_watchers(struct watch_feed *feed)
{
    struct list *next;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = next) {
        const struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        next = node->next;
        watcher->events->tick(watcher->arg, watcher_valid_ms(watcher));
    }
}

/* A watcher that is late holds up revocations once, and is then disconnected. */
static void end_late_watchers(struct watch_feed *feed)
{
    struct list *next;

    for (struct list *node = feed->watchers.next; node != &feed->watchers; node = next) {
        struct watcher *watcher = LIST_ENTRY(node, struct watcher, in_feed);

        next = node->next;
        if (!watcher_is_late(watcher))
            continue;
        metric_add(METRIC_WATCHERS_LATE, 1);
        end_watcher(watcher, WATCH_LATE);
    }
    watch_give_up_waits(feed);
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
    const struct callback closed = feed->closed;

    if (!feed->is_closing || feed->reads > 0 || !feed->is_ticker_closed)
        return;
    free(feed);
    callback_run(closed);
}

static void on_ticker_closed(uv_handle_t *handle)
{
    struct watch_feed *feed = handle->data;

    feed->is_ticker_closed = true;
    try_end(feed);
}

void watch_feed_close(struct watch_feed *feed, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!feed->is_closing && list_empty(&feed->watchers));
    feed->is_closing = true;
    feed->closed = (struct callback){closed, arg};
    for (unsigned i = 0; i < feed->count; i++)
        membership_set_watch(feed->parts[i].member, NULL, NULL);
    uv_close((uv_handle_t *)&feed->ticker, on_ticker_closed);
}
