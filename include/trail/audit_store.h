/* An account's audit trail, newest first. The script that makes a change also writes its event. People's actions, live
 * keys, test keys and refusals each have a stream of up to --audit-max events; a listing merges them. An event's id
 * encodes its stream entry, so a page cursor is found without a search. */
#pragma once
#include "core/address.h"
#include "engine/store.h"

/* A further fact of an event, such as {"role", "auditor"}. Never a secret. */
struct audit_datum {
    struct text name, value;
};
enum { AUDIT_DATA_MAX = 12 };

/* In an event about an enrolment, target_kind is "device", and target is the name that the device gave itself. */
struct audit_event {
    struct id id;
    struct text type; /* "api_key.created", … */
    int64_t created_ms;
    struct text actor, target, ip, request_id; /* empty: none */
    struct text actor_name, target_name;       /* their current name or email; empty: none */
    int64_t count;                             /* requests that the event covers; 0: the event has no count */
    struct text target_kind; /* "api_key", "device_key", "user", "invitation", or empty; "device": see above */
    struct audit_datum data[AUDIT_DATA_MAX];
    size_t data_count;
};
typedef void audit_listed(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                          bool has_more);
/* How far a follower has read an account's trail: the last entry of each class. Zero it to begin with the first. */
enum { AUDIT_CLASSES = 4 };
struct audit_position {
    struct {
        uint64_t ms, sequence;
    } of[AUDIT_CLASSES];
};
/* Moves the position forward to this event. */
void audit_position_note(struct audit_position *position, const struct id *event);
/* The classes without an entry yet go on with the first event of that time or later. */
void audit_position_skip_until(struct audit_position *position, int64_t ms);
/* Events after the position, oldest first. */
void audit_store_follow(struct store *store, const struct id *account, unsigned limit,
                        const struct audit_position *position, audit_listed *done, void *arg);

/* The events that a search is for. */
struct audit_filter {
    struct text type;          /* "api_key.created", or a family, "api_key" or "api_key."; empty: any */
    struct text actor, target; /* an id, or any other text; empty: any */
    bool by_address;
    struct address address; /* with by_address: the event's address has these first bits, of 128 */
    unsigned address_bits;
    int64_t since_ms, until_ms; /* since <= created < until; 0: any */
    bool test_keys_only;        /* only events about test keys */
    /* Whose credential must still be valid at each slice, as for a change; NULL: a command's. */
    const struct audit_source *reader;
    bool (*is_wanted)(void *arg); /* asked before each further slice; false: STORE_UNAVAILABLE. NULL: it is */
    void *arg;
};
struct audit_page {
    const struct audit_event *events; /* newest first */
    size_t count;
    /* There may be more, after the event `next`. If fewer than the limit were found, the search has stopped because it
       has done enough work for one call; then `next` may be no event of the trail. */
    bool has_more;
    struct id next;
};
/* STORE_NOT_FOUND: starting_after is not an event id of this account. */
typedef void audit_found(void *arg, enum store_result result, const struct audit_page *page);
/* Looks for up to limit events, newest first, in slices that each take about 1 ms of Redis. The searches of a node take
 * turns, one slice at a time. starting_after: empty or NULL: from the newest event on. filter (NULL: everything), with
 * its texts, must live until done. */
void audit_store_search(struct store *store, const struct id *account, const struct audit_filter *filter,
                        unsigned limit, const struct id *starting_after, audit_found *done, void *arg);
