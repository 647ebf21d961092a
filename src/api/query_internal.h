/* Query parameters, each route's by a table: a repeated one is parameter_invalid, one that the table does not name
 * parameter_unknown. */
#pragma once
#include "core/limits.h"
#include "problem_internal.h"
#include "store/key_store.h"

/* storage: query.len bytes for what is decoded; needed only during the call. target: holds the defaults, and
 * gets what the query says. False: *ret_problem tells why. */
typedef bool query_reader(struct text query, char *storage, void *target, struct problem *ret_problem);

/* For routes without parameters; target may be NULL. */
query_reader query_read_nothing;

/* A struct key_query: limit, starting_after, ending_before, mode, status. */
query_reader query_read_keys;
/* The same without mode: device keys have one. */
query_reader query_read_device_keys;

struct event_query {
    unsigned limit;
    struct id starting_after; /* empty: none */
};
query_reader query_read_events;

struct usage_query {
    unsigned days;
    struct id key_ids[LIST_LIMIT_MAX]; /* those whose days are wanted */
    size_t key_count;
};
query_reader query_read_usage;
