/* The leases at one Redis (src/lease/README.md; Gray and Cheriton 1989): while a node's lease runs, no revocation is
 * answered that the node has not heard of, so that it may answer from memory. This ties together the node's own
 * membership, the revocations that wait for those of others (barriers), what is known of leases by another master (the
 * fence), which store is trusted, and what was promised to it. */
#pragma once
#include "lease/identity.h"
#include "lease/membership.h"

struct lease;

/* sentinel: NULL, or the one behind settings->resolver. */
struct lease *lease_create(const struct lease_settings *settings, struct redis_sentinel *sentinel);
/* When no node is a member any more. Revocations that still wait are told that nothing is promised. closed runs once,
 * later. */
void lease_close(struct lease *lease, void (*closed)(void *arg), void *arg);

/* Makes this node a member; one at a time. Connects at once, on a connection of its own. lease_ms: 0 to LEASE_MS_MAX;
 * 0: no heartbeats and never a lease, but revocations are still told of. */
struct membership *lease_join(struct lease *lease, const struct redis_target *target, uint32_t lease_ms);
/* NULL: there is none, as for commands. */
struct membership *lease_member(const struct lease *lease);
/* 0: none. */
uint32_t lease_member_ms(const struct lease *lease);
/* As membership_may_decide() has it; without a member no lease is needed. */
bool lease_may_decide(const struct lease *lease);

struct barriers *lease_barriers(struct lease *lease);
struct fence *lease_fence(struct lease *lease);
struct identity *lease_identity(struct lease *lease);
struct promises *lease_promises(struct lease *lease);
/* The link of changes came up; or it is down: Redis may be another one now, and what waits is promised nothing. */
void lease_on_connection(struct lease *lease, bool is_up);
