/* Suspending, resuming and closing accounts. */
#pragma once
#include "records/account_store.h"

struct account_suspension {
    char name[ACCOUNT_NAME_MAX_BYTES + 1];
    int64_t since_ms; /* 0: it is not suspended */
    bool was_suspended;
};
typedef void account_was_suspended(void *arg, enum store_result result, const struct account_suspension *suspension);

/* STORE_OK: no node accepts a key or session of the account for a request that arrives later. begins_closing: it can no
 * longer be resumed. STORE_NOT_FOUND: no such account. STORE_CONFLICT: it is closed. STORE_REFUSED: the store has a
 * schema that nodes of earlier versions serve, which know no suspended accounts. Writes event account.suspended. */
void account_store_suspend(struct store *store, const struct id *account, bool begins_closing,
                           const struct audit_source *source, account_was_suspended *done, void *arg);
/* STORE_CONFLICT: its closing has begun. Writes event account.resumed. */
void account_store_resume(struct store *store, const struct id *account, const struct audit_source *source,
                          account_was_suspended *done, void *arg);

/* One step of closing; repeat it until is_done. */
struct account_close_step {
    int64_t count; /* keys revoked, or people removed */
    bool is_done;
    int64_t sessions; /* ended, of people */
};
typedef void account_closed_some(void *arg, enum store_result result, const struct account_close_step *step);

/* All return STORE_CONFLICT unless the closing has begun. Revokes some of the keys; with the last, no node accepts any
 * of them. Writes events <kind>.revoked. */
void account_store_close_keys(struct store *store, const struct id *account, const struct audit_source *source,
                              account_closed_some *done, void *arg);
/* Removes some of the people and their sessions; their emails are free again. Writes events user.removed. */
void account_store_close_people(struct partitions *partitions, const struct id *account,
                                const struct audit_source *source, account_closed_some *done, void *arg);
/* The end, for good. STORE_CONFLICT also if keys or people are left. Writes event account.closed. A day later nodes
 * bury the keys (src/engine/README.md#tombstones). erases: at once, and the emails of the account's former people are
 * forgotten; also of one that is closed already. */
void account_store_close(struct store *store, const struct id *account, bool erases, const struct audit_source *source,
                         store_done *done, void *arg);
