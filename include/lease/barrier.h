/* The barrier (rules 5 to 8): when a revocation may be answered. It is over when every member in the registry that the
 * script returned has acknowledged, or W after the script's reply: by then every lease that was valid when the key was
 * marked has expired, whatever happened to its node.
 *
 *   barrier_begin() -> ASKED -- the script's reply ----> WAITING -- all acknowledged, or W --> OVER
 *                        |                                 +----- changes link lost --------> FAILED
 *                        +-- the script changed nothing -> DROPPED
 */
#pragma once
#include "base/attr.h"
#include "lease/fence.h"
#include "lease/names.h"
#include "lease/settings.h"

struct barrier;
struct barriers;

/* settings and fence must outlive the barriers. */
struct barriers *barriers_create(const struct lease_settings *settings, const struct fence *fence);
/* Pending barriers end with false. closed runs once, later, after everything is freed. */
void barriers_close(struct barriers *barriers, void (*closed)(void *arg), void *arg);
/* The `changes` link is down: the next Redis may be another one, so pending barriers end with false. */
void barriers_fail(struct barriers *barriers);

/* This node's name as a member: others acknowledge to it. NULL: acknowledgements cannot reach this node at present. */
void barriers_set_member(struct barriers *barriers, const struct member_name *name);
/* The longest lease that this node may hold; 0: none. W is never by less, and by more if another node's is longer. */
void barriers_set_lease(struct barriers *barriers, uint32_t lease_ms);

/* W: for how long a barrier waits for a node that does not acknowledge. */
uint32_t barrier_wait_ms(uint32_t lease_ms);

/* How long until the last of the pending barriers ends by time; 0: none waits. */
uint64_t barriers_left_ns(const struct barriers *barriers);

/* Call this before the script: acknowledgements can arrive before its reply. */
struct barrier *barrier_begin(struct barriers *barriers);
/* For the script to publish: the member to acknowledge to ("-": none) and the barrier. Valid until done runs or
 * barrier_drop(). */
struct text barrier_member(const struct barrier *barrier);
struct text barrier_name(const struct barrier *barrier);
/* The nodes of a barrier at its end. */
struct barrier_tally {
    unsigned registered; /* sessions in the registry that the script returned */
    unsigned waited_for; /* those of them that did not acknowledge, so that their leases had to expire */
    uint64_t took_ns;    /* since barrier_begin(), so since before the script ran */
    uint64_t wait_ns;    /* W: an earlier barrier of the same revocation took no longer, except after a failover */
};
/* Fills it before done runs with true. It must live until done runs or barrier_drop(). */
void barrier_tell(struct barrier *barrier, struct barrier_tally *ret_tally);
/* The script changed nothing: frees the barrier. */
void barrier_drop(struct barrier *barrier);
/* The script has answered with lease_max_ms and the registry (member, what it holds, member, …). done runs once,
 * perhaps inside this call, and frees the barrier; true: no node accepts the key any more. Returns false at once if the
 * reply is malformed: done does not run, and the caller drops the barrier. */
MUST_CHECK bool barrier_wait(struct barrier *barrier, int64_t lease_max_ms, const struct redis_reply *registry,
                             void (*done)(void *arg, bool is_over), void *arg);

/* Something was changed that nodes always read from Redis: a key was created, a session has ended. done runs once,
 * perhaps inside this call, when every lease that a replaced master may have granted has expired (rule 10). A node with
 * such a lease still reads the old master, where nothing has changed. is_over is false if the `changes` link was lost
 * meanwhile; the change was made either way. */
void barriers_settle(struct barriers *barriers, void (*done)(void *arg, bool is_over), void *arg);

/* A member has dropped the key. */
void barriers_acknowledge(struct barriers *barriers, struct text member, struct text barrier);
