/* The store's verbs that auth calls, and a membership, controlled by a test: calls are kept, and answered when the test
 * says so. */
#pragma once
#include "engine/alias.h"
#include "records/key_store.h"
#include "lease/lease.h"
#include "engine/partitions.h"
#include "records/usage_store.h"

enum { FAKE_FINDS_MAX = 512 };

struct store {
    struct {
        uint8_t digest[KEY_DIGEST_BYTES];
        key_found *done;
        void *arg;
    } finds[FAKE_FINDS_MAX];
    size_t find_count; /* calls so far */
    size_t confirm_count;
    struct id confirmed; /* by the last of them */
    bool has_aliases;
    alias_found *alias_done; /* of the last search for one; NULL: answered, or there was none */
    void *alias_arg;

    bool flush_waits; /* until fake_store_answer_flush() */
    size_t flush_count;
    char sender[64];
    uint64_t sequence;
    struct usage_entry entries[USAGE_BATCH_MAX];
    size_t entry_count;
    struct usage_refusal refusals[USAGE_REFUSALS_BATCH_MAX];
    size_t refusal_count;
    store_done *flush_done;
    void *flush_arg;
};

void fake_store_answer_find(struct store *store, size_t nth, enum store_result result, const struct key_record *key);
void fake_store_answer_alias(struct store *store, enum store_result result, unsigned bucket);
void fake_store_answer_flush(struct store *store, enum store_result result);

enum { FAKE_PARTITIONS_MAX = 4 };

struct partitions {
    struct store *stores[FAKE_PARTITIONS_MAX];
    unsigned count;
};

struct membership {
    bool has_lease;
    bool is_fenced;      /* reads decide only under a lease */
    bool is_ignorant;    /* does not know which accounts are suspended */
    struct id suspended; /* an account; empty: none */
    uint64_t now_ns, epoch;
    int *looks; /* counts membership_has_lease(); may be NULL */
    struct membership_events events;
    uint64_t lease_until_ns; /* as membership_lease_until_ns() returns it */
    void *arg;
};
