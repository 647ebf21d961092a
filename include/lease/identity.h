/* Which store this is (rule 11): the id that its first account brought, and the one process of Redis that all links of
 * a node speak to. A node that knew a store decides nothing by another one, by an emptied one, or by a replica. */
#pragma once
#include "base/attr.h"
#include "lease/promises.h"

enum { STORE_ID_CHARS = 32 };

struct identity;

/* Both outlive it. */
struct identity *identity_create(const struct lease_settings *settings, struct promises *promises);
void identity_destroy(struct identity *identity);
/* A node waits for the first account; commands, which may make it, take an empty store. */
void identity_set_node(struct identity *identity, bool is_node);

/* The id of the store that is known; empty: none yet. */
const char *identity_known(const struct identity *identity);
/* What becomes the id of a store that has none. */
struct text identity_offered(const struct identity *identity);

/* Asks on the link of changes for the store's id; identity_answered() is to be called with the reply, and is false
 * where that says nothing. */
void identity_ask(const struct identity *identity, redis_done *done, void *arg);
MUST_CHECK bool identity_answered(struct identity *identity, enum redis_outcome outcome,
                                  const struct redis_reply *reply);
/* What a script or a read met: the id that is there, empty for none. False: it is another store than ours, and from now
 * on nothing is decided by it. */
bool identity_found(struct identity *identity, struct text id);
/* The store holds, of this node's changes, those up to that number, when `answered` had been acknowledged. */
bool identity_holds(struct identity *identity, uint64_t held, uint64_t answered);
/* Redis has become a replica. */
void identity_demoted(struct identity *identity);
/* To be called before each read on the link, so that what it brings is known to be ours. */
void identity_witness(struct identity *identity, struct redis_link *link);

/* Why nothing is decided by what is there, as a sentence; NULL: it is our store. */
const char *identity_strange(const struct identity *identity);
/* The store waits for its first account. */
bool identity_is_empty(const struct identity *identity);
/* Whether what the link of reads brings says anything. */
bool identity_may_decide(const struct identity *identity);
