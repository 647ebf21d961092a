/* The feed of revocations and its watchers: watch_feed.c reads and tells, watch_acknowledge.c knows what barriers wait
 * for and what a watcher may rely on. */
#pragma once
#include "auth/watch_feed.h"
#include "base/callback.h"
#include "base/list.h"
#include "watch_waits_internal.h"

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
    struct callback closed;
    unsigned count;
    struct feed_part parts[];
};

/* As membership_watch.defers; arg: a feed_part. */
bool watch_on_barrier(void *arg, const struct due_acknowledgement *due);
/* Acknowledges the barriers that all watchers have acknowledged. */
void watch_settle_waits(struct watch_feed *feed);
/* For a watcher that has begun and acknowledges, and was just removed. */
void watch_withhold(struct watcher *watcher);
/* Whether a barrier waits for it that is older than W. */
bool watcher_is_late(const struct watcher *watcher);
/* Barriers that are older than W are never acknowledged. */
void watch_give_up_waits(struct watch_feed *feed);
/* As watch_events.tick says it. */
uint32_t watcher_valid_ms(const struct watcher *watcher);
