/* Usage counters and time of last use, in Redis. */
#pragma once
#include "core/address.h"
#include "core/key.h"
#include "engine/store.h"

enum { USAGE_TIME_BITS = 62 };

/* Uses of one key on one UTC day. Packed without padding, so that counting a use touches one cache line. */
struct usage_entry {
    char account[ULID_TEXT_CHARS], key[ULID_TEXT_CHARS]; /* of the ids: id_chars() */
    uint32_t uses;
    uint64_t last_used_ms : USAGE_TIME_BITS; /* also gives the day */
    uint64_t is_device : 1;
    uint64_t is_live : 1;
};

/* Why a known key was refused. */
enum usage_reason { USAGE_REVOKED, USAGE_SCOPE, USAGE_MODE, USAGE_SUSPENDED, USAGE_REASONS };

enum { USAGE_ROUTE_BYTES = 128 };

/* Refused requests of one key, for one reason, on one UTC day. */
struct usage_refusal {
    char account[ULID_TEXT_CHARS], key[ULID_TEXT_CHARS]; /* of the ids: id_chars() */
    enum usage_reason reason;
    bool is_device, is_live;
    uint32_t count;
    int64_t first_ms;            /* also gives the day */
    char ip[ADDRESS_TEXT_BYTES]; /* of the first one; NUL-terminated, as are these two */
    char request_id[ID_TEXT_BYTES];
    char route[USAGE_ROUTE_BYTES]; /* method and route, "GET /v1/patients"; never the path. Perhaps cut short */
};

enum { USAGE_BATCH_MAX = 1024, USAGE_REFUSALS_BATCH_MAX = 64 };

/* Must not be empty. */
struct usage_batch {
    const struct usage_entry *entries; /* of one UTC day, each for a different key */
    size_t count;
    const struct usage_refusal *refusals;
    size_t refusal_count;
};

/* Adds a batch, which is copied. sender is the node's random name; sequence numbers its batches, and a batch resent
 * under its old number counts once. The time of last use never moves back. Use of a revoked key is an event of its
 * account, at most one per key, network and hour. */
void usage_store_flush(struct store *store, struct text sender, uint64_t sequence, const struct usage_batch *batch,
                       store_done *done, void *arg);

struct usage_day {
    char date[11];
    int64_t test_requests, live_requests;
    int64_t test_refused, live_refused;
};
/* The usage of one key. */
struct usage_key {
    struct id key;
    struct text name; /* name and mode; empty: the account has no such key */
    struct text mode;
    int64_t requests;
    const int64_t *by_day; /* one per day; NULL unless the key was asked for */
    int64_t refused[USAGE_REASONS];
};
struct usage_wanted {
    unsigned days;         /* UTC days */
    int64_t last_ms;       /* a time on the last of them; 0: today */
    const struct id *keys; /* list these by day; none: list the most used keys of all time, with totals */
    size_t key_count;
};
typedef void usage_read(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                        const struct usage_key *keys, size_t key_count);
/* days * key_count must not exceed USAGE_CELLS_MAX. Each day is read in one step; several days of many keys are not. */
void usage_store_read(struct store *store, const struct id *account, const struct usage_wanted *wanted,
                      usage_read *done, void *arg);
