/* Barriers that this node acknowledges once its watchers have (rule 6 in src/lease/README.md): which watchers each
 * waits for, and how far they must have acknowledged. */
#pragma once
#include "core/watch_cursor.h"
#include "lease/names.h"

enum { WATCH_WAITS_MAX = 256 };

struct watch_wait {
    unsigned partition;
    uint64_t heard;               /* number of its message in the partition */
    uint64_t watchers;            /* waits for those that had begun by then: numbers up to this one */
    bool is_placed;               /* what its message told of lies in the log up to: */
    struct log_position position; /* which a watcher must acknowledge */
    uint64_t until_ns;            /* boot clock */
    struct due_acknowledgement due;
};

/* Begins as {0}; in the order in which they were heard. */
struct watch_waits {
    struct watch_wait items[WATCH_WAITS_MAX];
    size_t count;
};

/* Left out if there are too many: then it is never acknowledged, and costs its revocation W. */
void watch_waits_add(struct watch_waits *waits, const struct watch_wait *wait);
/* A read that was sent when the partition had heard that many messages has reached the end of the log at position. */
void watch_waits_place(struct watch_waits *waits, unsigned partition, uint64_t heard, struct log_position position);
/* Whether a watcher that has acknowledged up to there need not be waited for. number: when it began. */
bool watch_wait_covers(const struct watch_wait *wait, uint64_t number, struct log_position acknowledged);
/* Removes those that is_over() says, and tells them to removed(). */
void watch_waits_remove(struct watch_waits *waits, bool (*is_over)(void *arg, const struct watch_wait *wait),
                        void (*removed)(void *arg, const struct watch_wait *wait), void *arg);
