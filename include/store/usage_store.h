/* Usage counters and last use in Redis. */
#pragma once
#include "core/address.h"
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

/* Why a key that is known was refused. */
enum usage_reason { USAGE_REVOKED, USAGE_SCOPE, USAGE_MODE, USAGE_REASONS };

/* Refused requests of one key, for one reason, on one UTC day. */
struct usage_refusal {
    char account[ULID_TEXT_CHARS], key[ULID_TEXT_CHARS]; /* of their ids: id_chars() */
    enum usage_reason reason;
    bool is_device, is_live;
    uint32_t count;
    int64_t first_ms;            /* tells the day too */
    char ip[ADDRESS_TEXT_BYTES]; /* of the first of them; NUL-terminated, as is the next */
    char request_id[ID_TEXT_BYTES];
};

enum { USAGE_BATCH_MAX = 1024, USAGE_REFUSALS_BATCH_MAX = 64 };

/* At least one of one kind. */
struct usage_batch {
    const struct usage_entry *entries; /* all of one UTC day, each of another key */
    size_t count;
    const struct usage_refusal *refusals;
    size_t refusal_count;
};

/* Adds a batch, which is copied. sender is the node's random name, sequence counts its batches: a batch that is
 * sent again under the same number counts once. last_used never goes back. That a revoked key was used is an event of
 * its account, at most one a key and hour. */
void usage_store_flush(struct store *store, struct text sender, uint64_t sequence, const struct usage_batch *batch,
                       store_done *done, void *arg);

struct usage_day {
    char date[11];
    int64_t test_requests, live_requests;
    int64_t test_refused, live_refused;
};
/* What one key was used. */
struct usage_key {
    struct id key;
    struct text name; /* name and mode: empty where the account has no such key */
    struct text mode;
    int64_t requests;
    const int64_t *by_day; /* of each day, NULL where it was not asked for */
    int64_t refused[USAGE_REASONS];
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
