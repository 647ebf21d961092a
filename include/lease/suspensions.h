/* The suspended accounts, which a node keeps in memory so that a check from the cache needs no Redis
 * (src/lease/README.md#suspended-accounts). Redis numbers every suspension and resumption: the number of the last one
 * is the version of the set. Loop thread only. */
#pragma once
#include "core/id.h"
#include "lease/settings.h"

struct suspensions;

/* settings must outlive it. */
struct suspensions *suspensions_create(const struct lease_settings *settings);
/* The links are about to close: stops repeating. */
void suspensions_stop(struct suspensions *suspensions);
void suspensions_destroy(struct suspensions *suspensions);

/* Whether the cache may answer: the set is complete since this membership began. */
bool suspensions_are_known(const struct suspensions *suspensions);
/* Whether the set is at least as new as the batch of reads whose replies are arriving. If not, read again. */
bool suspensions_cover_batch(const struct suspensions *suspensions);
bool suspensions_include(const struct suspensions *suspensions, const struct id *account);

/* A membership has begun or ended: a set that is being read, or was read before, belongs to none (rules 1 and 3). */
void suspensions_on_membership(struct suspensions *suspensions);
/* Likewise without a new membership: messages may have been missed. */
void suspensions_forget(struct suspensions *suspensions);
/* A message said so. */
void suspensions_hear(struct suspensions *suspensions, const struct id *account, bool is_suspended, uint64_t version);

/* Before a batch on the `reads` link: reads the set in front of it, if it is missing or outdated. */
void suspensions_ask(struct suspensions *suspensions);
/* The version in Redis right before the reads of the batch, which no set covers if it could not be read. */
#define SUSPENSIONS_UNKNOWN UINT64_MAX
void suspensions_on_batch(struct suspensions *suspensions, uint64_t version);

/* The highest version heard or read. A store that holds a lower one has lost suspensions (rule 13). */
uint64_t suspensions_version(const struct suspensions *suspensions);
/* Repeats them on the `changes` link. */
void suspensions_tell_again(struct suspensions *suspensions);
