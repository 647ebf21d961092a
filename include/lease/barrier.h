/* The barrier (rules 5 to 8): when a revocation may be answered. It is over when every member in the registry that the
 * script returned has acknowledged, or when W has passed since the script's reply: then every lease that ran when the
 * key was marked has ended, whatever became of its node. */
#pragma once
#include "base/attr.h"
#include "lease/fence.h"
#include "lease/names.h"
#include "lease/settings.h"

struct barrier;
struct barriers;

/* Both outlive them. */
struct barriers *barriers_create(const struct lease_settings *settings, const struct fence *fence);
/* Those under way are told false; then frees. closed runs once, later. */
void barriers_close(struct barriers *barriers, void (*closed)(void *arg), void *arg);
/* The link of changes is down: Redis may be another one now, nothing more can be promised. */
void barriers_fail(struct barriers *barriers);

/* What this node is called as a member, to whom others acknowledge; NULL: nothing reaches it at present. */
void barriers_set_member(struct barriers *barriers, const struct member_name *name);
/* How long this node's own lease may be. */
void barriers_set_lease(struct barriers *barriers, uint32_t lease_ms);

/* Before the script is called, for acknowledgements can overtake its reply. */
struct barrier *barrier_begin(struct barriers *barriers);
/* What the script publishes: whom to acknowledge to ("-": nobody), and which barrier. Valid until done or
 * barrier_drop(). */
struct text barrier_member(const struct barrier *barrier);
struct text barrier_name(const struct barrier *barrier);
/* The script changed nothing: frees. */
void barrier_drop(struct barrier *barrier);
/* The script has answered: lease_max_ms and the registry (member, what it holds, member, ...). done runs once, perhaps
 * inside this call: true where no node accepts the key any more. False at once where these can't be. */
MUST_CHECK bool barrier_wait(struct barrier *barrier, int64_t lease_max_ms, const struct redis_reply *registry,
                             void (*done)(void *arg, bool is_over), void *arg);

/* A key was made: done runs once, perhaps inside this call, when no lease runs any more that another Redis granted
 * which was replaced by this one (rule 10). A node that has one asks that Redis, and would call the new key unknown.
 * False: the link of changes was lost meanwhile; the key is made all the same. */
void barriers_settle(struct barriers *barriers, void (*done)(void *arg, bool is_over), void *arg);

/* A node has let go. */
void barriers_acknowledge(struct barriers *barriers, struct text member, struct text barrier);
