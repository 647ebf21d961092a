/* API and device keys in Redis (ARCHITECTURE.md#data-in-redis). The record key:<digest> is authoritative. The check
 * path never writes it, and no script changes it once it is revoked, except its name and seal (key_rename.lua,
 * record_seal.lua). */
#pragma once
#include "core/key.h"
#include "engine/store.h"

typedef void key_found(void *arg, enum store_result result, const struct key_record *key);

/* The check path: one GET, on the `reads` link. STORE_NOT_FOUND: no such digest, or the record's MAC is wrong.
 * last_used_ms is not read and stays 0. */
void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg);

/* Adds a key and writes the audit event. A key with revoked_ms set is a decoy: revoked from the start, so that no node
 * ever accepts it, and not counted among the active ones. STORE_REFUSED: no such account. STORE_CONFLICT: the digest or
 * id exists, or the id was discarded. STORE_UNKNOWN: the key may exist; discard it. STORE_FULL: the account has its
 * maximum of active keys. STORE_LIMITED: too many changes by this actor, or by all actors of its kind in the account;
 * retry after retry_after_s. STORE_LEAVING: nothing was added. */
void key_store_insert(struct store *store, const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES],
                      const struct audit_source *source, store_limited *done, void *arg);

/* The keys that a caller may see: its own account and one kind; a test key sees only test keys. */
struct key_view {
    struct id account; /* empty: any account (commands) */
    enum key_kind kind;
    bool any_kind; /* commands */
    bool test_only;
};

/* STORE_NOT_FOUND: no such key, or the view hides it. */
void key_store_get(struct store *store, const struct key_view *view, const struct id *id, key_found *done, void *arg);

/* For commands: a key of any account and kind, with the name of its account and of whoever made it (empty: unknown).
 * The texts are valid during the call. */
struct key_shown {
    struct key_record key;
    struct text account_name, by_name;
};
typedef void key_was_shown(void *arg, enum store_result result, const struct key_shown *shown);
void key_store_show(struct store *store, const struct id *id, key_was_shown *done, void *arg);

enum key_status_filter { KEYS_ANY, KEYS_ACTIVE, KEYS_REVOKED };
struct key_query {
    struct key_view view;
    unsigned limit;
    struct id starting_after; /* empty: none. Both cursors are exclusive and need not exist */
    struct id ending_before;
    bool by_mode; /* list only keys of `mode` */
    enum key_mode mode;
    enum key_status_filter status;
};
/* Newest first. keys holds count records, valid during the call. */
typedef void keys_listed(void *arg, enum store_result result, const struct key_record *keys, size_t count,
                         bool has_more);
void key_store_list(struct store *store, const struct key_query *query, keys_listed *done, void *arg);

/* Revokes a key and writes the audit event. A repeated call keeps the first revoked_ms and writes no event. key is the
 * record after the change. STORE_OK: no node accepts the key any more, because the barrier (src/lease/README.md) is
 * over. It takes one round trip to the other nodes, or 1.25 leases + 50 ms if one does not answer. STORE_NOT_FOUND: no
 * such key, or the view hides it. STORE_UNKNOWN: nothing is promised; call again. */
void key_store_revoke(struct store *store, const struct key_view *view, const struct id *id,
                      const struct audit_source *source, key_found *done, void *arg);

/* The same for a list of keys, with one barrier for all. ids: each once. Redis runs other calls between its portions.
 * keys: what became of each, in the order of ids, but the actor's own key comes last; valid during the call. STORE_OK:
 * no node accepts any key that was found. STORE_UNKNOWN: nothing is promised, and some may be revoked; call again. As
 * for one key, other results are those of an actor who may not, or no longer, revoke: some may be revoked then too. */
enum { REVOKE_LIST_MAX = 10000 };
enum key_outcome { KEY_WAS_NOT_FOUND, KEY_WAS_REVOKED, KEY_WAS_REVOKED_BEFORE };
struct key_of_list {
    struct id id;
    enum key_outcome outcome;
    struct id account; /* this and the next not with KEY_WAS_NOT_FOUND */
    int64_t revoked_ms;
};
struct keys_observer {
    /* Runs for each key that is marked, before the barrier is over. NULL: not asked for. */
    void (*revoked)(void *arg, const struct key_record *key);
    void (*done)(void *arg, enum store_result result, const struct key_of_list *keys, size_t count);
    void *arg;
    /* Asked before each further portion; false: STORE_UNKNOWN. NULL: all of it is wanted. */
    bool (*is_wanted)(void *arg);
};
void key_store_revoke_list(struct store *store, const struct key_view *view, const struct id *ids, size_t count,
                           const struct audit_source *source, const struct keys_observer *observer);

/* Gives a key another name, also a revoked one, and writes the audit event; the same name again changes nothing. Nodes
 * that have cached the name read it again, and nobody waits for them: no check depends on it. name: as label_valid().
 * key is the record after the change. STORE_NOT_FOUND: no such key, or the view hides it. STORE_LIMITED as for
 * key_store_insert(). STORE_UNKNOWN: it may have either name; call again. */
typedef void key_renamed(void *arg, enum store_result result, const struct key_record *key, uint32_t retry_after_s);
void key_store_rename(struct store *store, const struct key_view *view, const struct id *id, struct text name,
                      const struct audit_source *source, key_renamed *done, void *arg);

/* Says when a key will be revoked, by the store's time (ends_ms; 0: never), and writes the audit event. STORE_OK: every
 * node will keep to it, without doing anything more; key is the record after the change, made at said_ms by the
 * store's time. STORE_NOT_FOUND: no such key, or the view hides it. STORE_CONFLICT: it is revoked. STORE_REFUSED: why
 * says what is wrong with the time; may_delay: it may be later than the one before, or never. STORE_LIMITED: too many
 * changes of times that were said before, by one who is not an operator. STORE_UNKNOWN: nothing is promised; call
 * again. */
enum key_schedule_refusal {
    KEY_SCHEDULE_PAST = 1, /* it has come */
    KEY_SCHEDULE_FAR,      /* more than KEY_SCHEDULE_MAX_MS from now */
    KEY_SCHEDULE_LATER,    /* later than the one before */
};
#define KEY_SCHEDULE_MAX_MS (INT64_C(400) * 24 * 60 * 60 * 1000)
typedef void key_scheduled(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                           enum key_schedule_refusal why, uint32_t retry_after_s);
void key_store_schedule(struct store *store, const struct key_view *view, const struct id *id, int64_t ends_ms,
                        bool may_delay, const struct audit_source *source, key_scheduled *done, void *arg);
/* Adds a key, as key_store_insert(), that replaces another one of its account. The other ends overlap_ms later, at the
 * earliest after a minute, unless it was to end sooner; with 0 also as soon as the new one is accepted. An earlier
 * successor that was never accepted is revoked. STORE_OK: every node will keep to it; replaced is its record, said_ms
 * as above. STORE_NOT_FOUND: no such key, or the view hides it. STORE_REFUSED: it is revoked; or successor, an id, has
 * replaced it and was accepted (else empty); or that is "again": another one has replaced it since replaced_by was
 * read. */
struct key_replacement {
    const struct key_record *key; /* the new one */
    const uint8_t *digest;        /* KEY_DIGEST_BYTES */
    struct key_view view;
    struct id replaced;
    struct id replaced_by; /* what its record said when the caller read it */
    int64_t overlap_ms;
};
typedef void key_replaced(void *arg, enum store_result result, const struct key_record *replaced, int64_t said_ms,
                          struct text successor, uint32_t retry_after_s);
void key_store_replace(struct store *store, const struct key_replacement *replacement,
                       const struct audit_source *source, key_replaced *done, void *arg);
/* A key that is_unconfirmed was accepted: its secret has arrived. Nobody waits for it, and a later use repeats it. */
void key_store_confirm(struct store *store, const struct id *id);
/* Revokes a key whose secret reached nobody, unless it replaces another one and was accepted; the end that it has set
 * to that one is withdrawn. Retries with backoff until Redis answers or the store closes. */
void key_store_discard(struct store *store, const struct id *id, const struct audit_source *source);
/* Discards that Redis has not confirmed yet. */
size_t key_store_discards(const struct store *store);
