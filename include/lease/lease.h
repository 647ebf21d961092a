/* The leases at one Redis (src/lease/README.md; Gray and Cheriton 1989). While its lease is valid, a node has seen
 * every answered revocation, so it may answer from memory. This ties together the node's own membership, the barriers
 * of its revocations, the fence after a failover, the identity of the store, and what the node knows to be answered. */
#pragma once
#include "lease/identity.h"
#include "lease/membership.h"

struct lease;

struct lease *lease_create(const struct lease_settings *settings);
/* Only after the member has left. Pending barriers end with false. closed runs once, later. */
void lease_close(struct lease *lease, void (*closed)(void *arg), void *arg);

/* Makes this node a member; only one at a time. Connects at once, on a connection of its own. lease_ms: 0 to
 * LEASE_MS_MAX. 0: no heartbeats and no lease, but the member still hears of revocations. */
struct membership *lease_join(struct lease *lease, const struct redis_target *target, uint32_t lease_ms);
/* NULL: none, as in commands. */
struct membership *lease_member(const struct lease *lease);
/* 0: no member, or no leases. */
uint32_t lease_member_ms(const struct lease *lease);
/* As membership_may_decide(); true without a member. */
bool lease_may_decide(const struct lease *lease);

const struct lease_settings *lease_settings_of(const struct lease *lease);
struct barriers *lease_barriers(struct lease *lease);
struct fence *lease_fence(struct lease *lease);
struct identity *lease_identity(struct lease *lease);
struct chains *lease_chains(struct lease *lease);
struct kept *lease_kept(struct lease *lease);
struct gathering *lease_gathering(struct lease *lease);
struct suspensions *lease_suspensions(struct lease *lease);
/* The `changes` link came up or went down. After it went down the next Redis may be another one, so pending barriers
 * end with false. */
void lease_on_connection(struct lease *lease, bool is_up);
