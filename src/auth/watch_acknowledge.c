#include "watch_feed_internal.h"

#include "base/check.h"
#include "base/clock.h"

static struct watch_wait wait_for(const struct feed_part *part, const struct due_acknowledgement *due)
{
    return (struct watch_wait){.partition = part->number,
                               .heard = part->heard,
                               .watchers = part->feed->begun,
                               .until_ns = clock_boot_ns() + part->feed->wait_ms * CLOCK_NS_PER_MS,
                               .due = *due};
}

/* Without an acknowledgement, the revocation waits W for this node, as it would for the watcher's own lease. */
bool watch_on_barrier(void *arg, const struct due_acknowledgement *due)
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

void watch_settle_waits(struct watch_feed *feed)
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
void watch_withhold(struct watcher *watcher)
{
    struct watch_feed *feed = watcher->feed;

    INVARIANT(feed->acknowledging > 0);
    feed->acknowledging--;
    feed->withheld_until_ns = clock_boot_ns() + feed->wait_ms * CLOCK_NS_PER_MS;
    watch_waits_remove(&feed->waits, is_not_covered, give_up_wait, watcher);
    watch_settle_waits(feed);
}

static bool was_sent(const struct watcher *watcher, const struct watch_cursor *cursor)
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
    if (!watcher->acknowledges || !was_sent(watcher, cursor))
        return false;
    for (unsigned i = 0; i < cursor->count; i++)
        if (log_position_is_after(cursor->at[i], watcher->parts[i].acknowledged))
            watcher->parts[i].acknowledged = cursor->at[i];
    watch_settle_waits(watcher->feed);
    return true;
}

static bool is_over(UNUSED void *arg, const struct watch_wait *wait)
{
    return clock_boot_ns() >= wait->until_ns;
}

/* Whether it had the chance to acknowledge: it could be told, unless it does not read. */
bool watcher_is_late(const struct watcher *watcher)
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

void watch_give_up_waits(struct watch_feed *feed)
{
    watch_waits_remove(&feed->waits, is_over, give_up_wait, NULL);
}

/* What is current */

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

uint32_t watcher_valid_ms(const struct watcher *watcher)
{
    const struct watch_feed *feed = watcher->feed;
    uint64_t least_ns = UINT64_MAX;

    for (unsigned i = 0; i < feed->count; i++) {
        uint64_t valid_ns = valid_ns_of(watcher, &feed->parts[i]);

        least_ns = valid_ns < least_ns ? valid_ns : least_ns;
    }
    return watcher->has_begun ? (uint32_t)(least_ns / CLOCK_NS_PER_MS) : 0;
}
