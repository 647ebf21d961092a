/* The log of invalidations in a partition: which keys were revoked, and which accounts suspended and resumed, in the
 * order in which nodes were told. Redis keeps about the last 100,000. */
#pragma once
#include "core/id.h"
#include "core/watch_cursor.h"
#include "engine/types.h"

enum invalidation_kind {
    INVALIDATION_UNREADABLE, /* of a kind that this version does not know: it may mean anything */
    INVALIDATION_REVOKED,
    INVALIDATION_SCHEDULED,   /* the key will be revoked */
    INVALIDATION_UNSCHEDULED, /* or no longer */
    INVALIDATION_SUSPENDED,
    INVALIDATION_RESUMED,
};

struct invalidation {
    struct log_position position;
    enum invalidation_kind kind;
    struct id key; /* of the three kinds about keys */
    struct id account;
    int64_t at_ms; /* of INVALIDATION_SCHEDULED: when; otherwise when it was logged */
};

enum { INVALIDATIONS_PER_PAGE = 100 };
struct invalidation_page {
    const struct invalidation *items;
    size_t count;
    struct log_position last; /* of the log, as far as it has been read */
    bool has_more;
};

/* STORE_REFUSED: entries after that position are missing; page->last is the newest. page is valid during the call, NULL
 * unless STORE_OK or STORE_REFUSED. */
typedef void invalidations_read(void *arg, enum store_result result, const struct invalidation_page *page);
/* Reads what was logged after that position, at most INVALIDATIONS_PER_PAGE. after NULL: nothing but where the log ends
 * now. */
void invalidation_log_read(struct store *store, const struct log_position *after, invalidations_read *done, void *arg);
