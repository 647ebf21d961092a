/* Reads query parameters by a table per route. A repeated one is parameter_invalid, an unknown one
 * parameter_unknown. */
#pragma once
#include "core/limits.h"
#include "problem_internal.h"
#include "trail/audit_store.h"
#include "records/key_store.h"

/* The parameters of a route. */
struct query {
    const struct query_row *rows;
    size_t count;
    /* Whether the values fit together; NULL: always. */
    bool (*agrees)(const void *target, struct problem *ret_problem);
};

/* route: whose rules the values must keep; NULL: none's. storage: query.len bytes for decoded values, which some
 * targets and problems point into. target: holds the defaults; parameters overwrite them. False, with the reason in
 * *ret_problem, if the query is wrong. */
MUST_CHECK bool query_read(const struct query *parameters, const struct route *route, struct text query, char *storage,
                           void *target, struct problem *ret_problem);

extern const struct query QUERY_NOTHING;
/* Into a struct key_query. All device keys have the same mode, so that is no parameter. */
extern const struct query QUERY_KEYS, QUERY_DEVICE_KEYS;

struct event_query {
    unsigned limit;
    struct id starting_after;   /* empty: none */
    struct audit_filter filter; /* its texts point into storage */
};
extern const struct query QUERY_EVENTS;

struct people_query {
    unsigned limit;
    struct id starting_after; /* empty: none */
};
extern const struct query QUERY_PEOPLE, QUERY_INVITATIONS;
/* revoke_keys, into an enum key_fate. */
extern const struct query QUERY_REMOVAL;

struct watch_query {
    struct text since; /* empty: from now on */
    bool acknowledges;
};
extern const struct query QUERY_WATCH;

struct acknowledgement_query {
    struct text watcher, cursor; /* empty: not given */
};
#define CURSOR_RULE "cursor must be an event id that was sent on this stream."
extern const struct query QUERY_ACKNOWLEDGEMENT;

enum usage_group { USAGE_BY_DAY, USAGE_BY_MODE, USAGE_BY_KEY };
enum { USAGE_PERIOD_DAYS = 30 }; /* of a period without a beginning */
struct usage_period {
    int64_t from_ms, to_ms; /* first and last day; 0: not given */
    bool is_given;          /* anything of this was */
    enum usage_group group;
    unsigned limit;           /* 0: not given */
    struct id starting_after; /* a key; empty: none */
};
extern const struct query QUERY_USAGE_PERIOD;

struct usage_query {
    struct usage_period period;        /* first, because its parameters are read the same way */
    unsigned days;                     /* 0: not given */
    struct id key_ids[LIST_LIMIT_MAX]; /* report their daily usage */
    size_t key_count;
};
extern const struct query QUERY_USAGE;
