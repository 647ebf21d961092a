/* Reads query parameters by a table per route. A repeated one is parameter_invalid, an unknown one
 * parameter_unknown. */
#pragma once
#include "core/limits.h"
#include "problem_internal.h"
#include "store/audit_store.h"
#include "store/key_store.h"

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

struct usage_query {
    unsigned days;
    struct id key_ids[LIST_LIMIT_MAX]; /* report their daily usage */
    size_t key_count;
};
query_reader query_read_usage;
