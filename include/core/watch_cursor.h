/* How far a watcher of revocations has come (src/api/README.md#watching-revocations): a position in the log of
 * invalidations of each partition. Clients keep its text and send it back; nothing in it is secret. */
#pragma once
#include "base/text.h"
#include "core/bucket.h"

/* The name of an entry of a Redis stream. All zero: before the first one. */
struct log_position {
    uint64_t ms, sequence;
};
enum { LOG_POSITION_BYTES = 42 /* two numbers of 64 bits, a dash, NUL */ };

static inline bool log_position_equal(struct log_position a, struct log_position b)
{
    return a.ms == b.ms && a.sequence == b.sequence;
}
static inline bool log_position_is_after(struct log_position a, struct log_position b)
{
    return a.ms > b.ms || (a.ms == b.ms && a.sequence > b.sequence);
}
/* "<ms>-<sequence>", as Redis writes it. */
void log_position_print(struct log_position position, char ret_text[LOG_POSITION_BYTES]);
MUST_CHECK bool log_position_parse(struct text t, struct log_position *ret_position);

enum { WATCH_STORE_BYTES = 8, WATCH_CURSOR_MAX_CHARS = 7000 };

struct watch_cursor {
    uint8_t store[WATCH_STORE_BYTES]; /* the first bytes of the store's id */
    unsigned count;                   /* partitions of the store */
    struct log_position at[PARTITIONS_MAX];
};

/* base64url, at most WATCH_CURSOR_MAX_CHARS: about 10 characters for each partition, and 14 more. */
void watch_cursor_print(const struct watch_cursor *cursor, struct buf *out);
/* Accepts only what watch_cursor_print() writes. */
MUST_CHECK bool watch_cursor_parse(struct text t, struct watch_cursor *ret_cursor);
/* Whether both are of the same store with the same partitions. */
MUST_CHECK bool watch_cursor_fits(const struct watch_cursor *a, const struct watch_cursor *b);
