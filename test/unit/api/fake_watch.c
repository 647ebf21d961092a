/* The feed of revocations, with at most one watcher, which tests tell what they like. */
#include "fake_watch.h"
#include "fake_world.h"

#include <criterion/criterion.h>

struct fake_watch fake_watch;

struct watcher *watcher_add(struct watch_feed *feed, const struct watch_cursor *since, bool acknowledges,
                            const struct watch_events *events, void *arg)
{
    cr_assert(feed && !fake_watch.is_there);
    fake_watch = (struct fake_watch){
        .events = *events, .arg = arg, .is_there = true, .has_since = since != NULL, .acknowledges = acknowledges};
    if (since)
        fake_watch.since = *since;
    return (struct watcher *)&fake_watch;
}

void watcher_remove(struct watcher *watcher)
{
    cr_assert(watcher == (struct watcher *)&fake_watch && fake_watch.is_there);
    fake_watch.is_there = false;
}

void watcher_resume(struct watcher *watcher)
{
    cr_assert(watcher == (struct watcher *)&fake_watch && fake_watch.is_there);
    fake_watch.resumptions++;
}

struct watcher *watcher_find(struct watch_feed *feed, struct text id)
{
    cr_assert(feed);
    return fake_watch.is_there && text_equal(id, TEXT("me")) ? (struct watcher *)&fake_watch : NULL;
}

bool watcher_acknowledge(struct watcher *watcher, const struct watch_cursor *cursor)
{
    cr_assert(watcher == (struct watcher *)&fake_watch);
    fake_watch.acknowledged = *cursor;
    return fake_watch.acknowledges;
}

const char *watcher_id(const struct watcher *watcher)
{
    cr_assert(watcher == (struct watcher *)&fake_watch);
    return "0123456789abcdef0123456789abcdef";
}

uint32_t watch_feed_wait_ms(const struct watch_feed *feed)
{
    cr_assert(feed);
    return 1300;
}
