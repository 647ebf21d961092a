/* Tells watchers what was revoked: gateways and backends that hold long requests
 * (src/api/README.md#watching-revocations).
 *
 * A watcher gets what the logs of invalidations hold, in the order of each partition, and nothing else. The messages
 * that the membership hears are only the signal to read on. One read serves all watchers that have come equally far,
 * and one that reads slowly is left behind: its next entries are read when it has room for them. So a watcher holds no
 * more than a page here. Loop thread only. */
#pragma once
#include "base/attr.h"
#include "lease/membership.h"
#include "records/invalidation_log.h"
#include "engine/partitions.h"

#include <uv.h>

enum { WATCHER_ID_CHARS = 32 };

struct watch_feed;
struct watcher;

enum watch_end {
    WATCH_DRAINING, /* this node shuts down */
    WATCH_LATE,     /* it did not acknowledge in time */
};

/* Calls to the owner of a watcher. Each of them may remove the watcher (watcher_remove()). */
struct watch_events {
    /* Every later invalidation, of every partition, will be passed to event(). */
    void (*began)(void *arg, const struct watch_cursor *cursor);
    /* cursor: behind this one. */
    void (*event)(void *arg, const struct invalidation *invalidation, const struct watch_cursor *cursor);
    /* Something may have been missed. It goes on from cursor. */
    void (*gap)(void *arg, const struct watch_cursor *cursor);
    /* No more of these for now: send them. */
    void (*flush)(void *arg);
    /* Whether it takes a page. If not, call watcher_resume() later. */
    bool (*has_room)(void *arg);
    /* Several times in each lease. Until valid_ms from now, no confirmed revocation is missing from the stream, except
     * those that it will still send; 0: not known. */
    void (*tick)(void *arg, uint32_t valid_ms);
    /* It has been removed; only watcher_id() still works, until this returns. */
    void (*ended)(void *arg, enum watch_end why);
};

/* members: of the partitions, in their order, with leases (lease_ms above 0). All must outlive the feed. */
struct watch_feed *watch_feed_create(uv_loop_t *loop, const struct partitions *partitions,
                                     struct membership *const *members);
/* Ends all watchers. None may be added any more. NULL is fine. */
void watch_feed_drain(struct watch_feed *feed);
/* There must be no watcher. closed runs once, later. */
void watch_feed_close(struct watch_feed *feed, void (*closed)(void *arg), void *arg);

/* acknowledges: this node acknowledges a revocation only when watcher_acknowledge() was called for it, or after W.
 * After such a watcher is removed, the node acknowledges nothing for W, as if it had died: nobody knows whether the
 * watcher has ended what it held. since NULL: the stream begins with the next invalidation. Otherwise it begins after
 * since, or with a gap if the logs no longer reach back to it, or if since is of another store. events must outlive the
 * watcher. Nothing is called before this returns. */
struct watcher *watcher_add(struct watch_feed *feed, const struct watch_cursor *since, bool acknowledges,
                            const struct watch_events *events, void *arg);
void watcher_remove(struct watcher *watcher);
/* It has room again. */
void watcher_resume(struct watcher *watcher);
/* It has ended all that it was told of up to there. False: it was not told that much, or it is not one that
 * acknowledges. */
MUST_CHECK bool watcher_acknowledge(struct watcher *watcher, const struct watch_cursor *cursor);
/* NULL: there is none with that id. */
struct watcher *watcher_find(struct watch_feed *feed, struct text id);
/* 128 random bits in hex. */
const char *watcher_id(const struct watcher *watcher);
/* For how long a revocation waits for a node that does not acknowledge (W in src/lease/README.md), by this node's own
 * lease. */
uint32_t watch_feed_wait_ms(const struct watch_feed *feed);
