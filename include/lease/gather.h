/* Gathering, at a Redis that this node has not decided by before (rule 13): a master that took over, one that was
 * restarted, perhaps with an older file. It declares what this Redis lacks of the chains that it knows, repeats the
 * endings that it has kept, says that it has told all, and waits until every other member has, or until one of them
 * does not come. Until then, and as long as an ending is missing, the node decides nothing. Loop thread only. */
#pragma once
#include "lease/chains.h"
#include "lease/ending_logs.h"
#include "lease/fence.h"
#include "lease/settings.h"

struct gathering;
struct membership;

/* settings and parts must outlive it. */
struct gathering *gathering_create(const struct lease_settings *settings, struct chains *chains, struct kept *kept,
                                   const struct fence *fence);
/* The member whose name says that this node has told all. NULL: there is none. */
void gathering_set_member(struct gathering *gathering, const struct membership *member);
/* The logs on this node's disk: compared before it says that it has told all. NULL: there are none. Before the node
 * becomes a member. */
void gathering_set_logs(struct gathering *gathering, const struct ending_logs *logs);
/* The links are about to close: begins nothing any more. */
void gathering_stop(struct gathering *gathering);
/* Only with no call pending, so after the links have closed. closed runs once, later. */
void gathering_close(struct gathering *gathering, void (*closed)(void *arg), void *arg);

/* The `changes` link came up. */
void gathering_on_connection(struct gathering *gathering);
/* In which this node has told all that it knows, last; empty: in none yet. */
const char *gathering_era(const struct gathering *gathering);
/* The store's hash says so on the `changes` link: its names, its era, and how many endings it misses. Begins to gather,
 * unless that is done on this connection. Returns NULL: the node may decide by this Redis; or why not, as sentences.
 * When that has changed, settings->on_settled or on_doubt runs. */
const char *gathering_look(struct gathering *gathering, const struct store_names *names, struct text era,
                           uint64_t missing);
