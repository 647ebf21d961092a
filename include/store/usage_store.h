/* Usage counters and last use in Redis. */
#pragma once
#include "core/key.h"
#include "store/store.h"

enum { USAGE_TIME_BITS = 62 };

/* Uses of one key on one UTC day. Its bytes are all used: one cache line is all that counting touches of it. */
struct usage_entry {
    char account[ULID_TEXT_CHARS], key[ULID_TEXT_CHARS]; /* of their ids: id_chars() */
    uint32_t uses;
    uint64_t last_used_ms : USAGE_TIME_BITS; /* tells the day too */
    uint64_t is_device : 1;
    uint64_t is_live : 1;
};

enum { USAGE_BATCH_MAX = 1024 };

/* Adds a batch of at least one entry: all of one UTC day, each of another key. They are copied. sender is the node
 * session's random name, sequence counts its batches: a batch that is sent again under the same number counts once.
 * last_used never goes back. */
void usage_store_flush(struct store *store, struct text sender, uint64_t sequence, const struct usage_entry *entries,
                       size_t count, store_done *done, void *arg);

struct usage_day {
    char date[11];
    int64_t test_requests, live_requests;
};
/* What one key was used. */
struct usage_key {
    struct id key;
    struct text name; /* name and mode: empty where the account has no such key */
    struct text mode;
    int64_t requests;
    const int64_t *by_day; /* of each day, NULL where it was not asked for */
};
struct usage_wanted {
    unsigned days;         /* the last UTC days, today last */
    const struct id *keys; /* those whose days are wanted; none: the totals of the most used ones, since ever */
    size_t key_count;
};
typedef void usage_read(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count);
/* At most USAGE_CELLS_MAX days of keys. */
void usage_store_read(struct store *store, const struct id *account, const struct usage_wanted *wanted,
                      usage_read *done, void *arg);
