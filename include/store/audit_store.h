/* The audit trail of an account, newest first. Events are written by the scripts that do what they record. What people
 * do, live keys, test keys and refusals are kept apart, each up to --audit-max, and listed as one. Events' ids are made
 * of the entries' ids, so that a page's cursor finds its place without a search. */
#pragma once
#include "store/store.h"

struct audit_event {
    struct id id;
    struct text type; /* "api_key.created", … */
    int64_t created_ms;
    struct text actor, target, ip, request_id; /* empty: none */
    struct text actor_name, target_name;       /* what people call them now; empty: they have no name */
    int64_t count;                             /* requests that the event stands for; 0: it is no such event */
    struct text target_kind; /* "api_key", "device_key", "user", "device": the name it gave itself; or empty */
};
typedef void audit_listed(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                          bool has_more);
/* STORE_NOT_FOUND: starting_after (empty: none) is no event id of this account. */
void audit_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *starting_after,
                      audit_listed *done, void *arg);
