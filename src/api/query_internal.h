/* Reads query parameters by a table per route. A repeated one is parameter_invalid, an unknown one
 * parameter_unknown. */
#pragma once
#include "core/limits.h"
#include "problem_internal.h"
#include "trail/audit_store.h"
#include "records/key_store.h"

/* storage: query.len bytes for decoded values, which some targets point into. target: holds the defaults; parameters
 * overwrite them. False, with the reason in *ret_problem, if the query is wrong. */
typedef bool query_reader(struct text query, char *storage, void *target, struct problem *ret_problem);

/* For routes without parameters; target may be NULL. */
query_reader query_read_nothing;

/* A struct key_query: limit, starting_after, ending_before, mode, status. */
query_reader query_read_keys;
/* The same without mode: all device keys have the same mode. */
query_reader query_read_device_keys;

struct event_query {
    unsigned limit;
    struct id starting_after;   /* empty: none */
    struct audit_filter filter; /* its texts point into storage */
};
query_reader query_read_events;

struct people_query {
    unsigned limit;
    struct id starting_after; /* empty: none */
};
query_reader query_read_people;
query_reader query_read_invitations;
/* revoke_keys, into an enum key_fate. */
#define REVOKE_KEYS_RULE "revoke_keys must be \"none\", \"made\" or \"all\"."
query_reader query_read_removal;

struct watch_query {
    struct text since; /* empty: from now on */
    bool acknowledges;
};
query_reader query_read_watch;

struct acknowledgement_query {
    struct text watcher, cursor; /* empty: not given */
};
query_reader query_read_acknowledgement;

enum usage_group { USAGE_BY_DAY, USAGE_BY_MODE, USAGE_BY_KEY };
enum { USAGE_PERIOD_DAYS = 30 }; /* of a period without a beginning */
struct usage_period {
    int64_t from_ms, to_ms; /* first and last day; 0: not given */
    bool is_given;          /* anything of this was */
    enum usage_group group;
    unsigned limit;           /* 0: not given */
    struct id starting_after; /* a key; empty: none */
};
query_reader query_read_usage_period;

struct usage_query {
    struct usage_period period;        /* first, because its parameters are read the same way */
    unsigned days;                     /* 0: not given */
    struct id key_ids[LIST_LIMIT_MAX]; /* report their daily usage */
    size_t key_count;
};
query_reader query_read_usage;
