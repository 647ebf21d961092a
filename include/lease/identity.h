/* Which store this is (rule 11): the id that came with its first account, and the one Redis process that all links of a
 * node must reach. A node that knew a store accepts nothing from another store, an emptied one or a replica. */
#pragma once
#include "base/attr.h"
#include "lease/gather.h"
#include "lease/suspensions.h"

enum { STORE_ID_CHARS = 32, IDENTITY_PLACE_BYTES = 256 };

struct identity;

/* settings, gathering and suspensions must outlive it. */
struct identity *identity_create(const struct lease_settings *settings, struct gathering *gathering,
                                 struct suspensions *suspensions);
void identity_destroy(struct identity *identity);
/* A node waits for the first account, and gathers; commands can create it, so they accept an empty store, and what a
 * store misses does not keep them from ending something. */
void identity_set_node(struct identity *identity, bool is_node);

/* The id of the known store; empty: none yet. */
const char *identity_known(const struct identity *identity);
/* The id for a store that has none. */
struct text identity_offered(const struct identity *identity);

/* Reads the store's id on the `changes` link; done must pass the reply to identity_answered(). It returns false if the
 * reply says nothing about the store. */
void identity_ask(struct identity *identity, redis_done *done, void *arg);
MUST_CHECK bool identity_answered(struct identity *identity, enum redis_outcome outcome,
                                  const struct redis_reply *reply);
/* A script found this id; empty: none. False: it is not our store, and from now on nothing is decided by this Redis. */
bool identity_found(struct identity *identity, struct text id);
/* The store lacks changes that it had, or it misses endings of anybody: a script or a heartbeat found that. */
void identity_behind(struct identity *identity);
void identity_misses(struct identity *identity);
/* Redis has become a replica. */
void identity_demoted(struct identity *identity);
/* The store has a newer schema, perhaps because a copy into it is under way. Trusted again once identity_answered() has
 * run with an older one. */
void identity_outdated(struct identity *identity, bool is_copied_into);
/* The store was copied elsewhere, and is served there: at `place`, by the word of the store itself. Trusted again like
 * an outdated one. */
void identity_moved(struct identity *identity, struct text place);
/* The store has that many partitions. We expected another number, or this partition is another one of them. */
void identity_other_layout(struct identity *identity, int64_t partitions, unsigned expected);
/* Call this before each read on the link: it proves in the same batch that the replies come from our store, and tells
 * the `suspensions` which version belongs to those on the `reads` link. */
void identity_witness(struct identity *identity, struct redis_link *link);

/* Why this Redis decides nothing, as sentences; NULL: it holds our store. */
const char *identity_strange(const struct identity *identity);
/* The store waits for its first account. */
bool identity_is_empty(const struct identity *identity);
/* Whether replies on the `reads` link may decide anything. */
bool identity_may_decide(const struct identity *identity);
/* Take it when a read is sent: a reply decides only if it is the same, and not 0, when the reply arrives. Otherwise
 * Redis may have run the read before all nodes had told what it had lost (rule 13). Always the same for commands, which
 * do not gather. */
uint64_t identity_trust(const struct identity *identity);
