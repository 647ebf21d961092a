/* API and device keys in Redis (ARCHITECTURE.md#data-in-redis). key:<digest> is the one authority on a key; nothing on
 * the check path writes it, and once revoked is set no script changes it. */
#pragma once
#include "core/key.h"
#include "store/store.h"

typedef void key_found(void *arg, enum store_result result, const struct key_record *key);

/* The check path: one read, on the link of reads. STORE_NOT_FOUND: no such digest. last_used_ms is not read: 0. */
void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg);

/* Adds a key (its account must exist: STORE_REFUSED) with the audit event. STORE_UNKNOWN: it may exist; discard it.
 * STORE_FULL: the account has as many active keys as it may. STORE_LIMITED: the actor, or too many like him, made too
 * many changes, retry_after_s says for how long. */
typedef void key_inserted(void *arg, enum store_result result, uint32_t retry_after_s);
void key_store_insert(struct store *store, const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES],
                      const struct audit_source *source, key_inserted *done, void *arg);

/* What a caller may see: his account, one kind, and only test keys for a test key. */
struct key_view {
    struct id account; /* empty: any account (the command line) */
    enum key_kind kind;
    bool any_kind; /* the command line */
    bool test_only;
};

/* STORE_NOT_FOUND also for what the view hides. */
void key_store_get(struct store *store, const struct key_view *view, const struct id *id, key_found *done, void *arg);

enum key_status_filter { KEYS_ANY, KEYS_ACTIVE, KEYS_REVOKED };
struct key_query {
    struct key_view view;
    unsigned limit;
    struct id starting_after; /* empty: none; both are exclusive, and need not exist */
    struct id ending_before;
    bool by_mode; /* then only `mode` */
    enum key_mode mode;
    enum key_status_filter status;
};
/* Newest first. keys is an array of count records, valid during the call. */
typedef void keys_listed(void *arg, enum store_result result, const struct key_record *keys, size_t count,
                         bool has_more);
void key_store_list(struct store *store, const struct key_query *query, keys_listed *done, void *arg);

/* Revokes (again: the same revoked_ms is answered), with the audit event the first time. The record is as after.
 * STORE_OK: no node accepts the key any more, the barrier (src/lease/README.md) is over; that takes a round trip to the
 * other nodes, or 1.25 leases + 50 ms where one does not answer. STORE_UNKNOWN: nothing is promised, ask again. */
void key_store_revoke(struct store *store, const struct key_view *view, const struct id *id,
                      const struct audit_source *source, key_found *done, void *arg);
/* Revokes a key whose secret nobody got. Tried again with backoff until Redis answers or the store closes. */
void key_store_discard(struct store *store, const struct id *id, const struct audit_source *source);
/* Discards that have not been answered yet. */
size_t key_store_discards(const struct store *store);
