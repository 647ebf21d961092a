/* A node's membership in the deployment (design 6, rules 1, 2, 6 and 9; Gray and Cheriton 1989): what allows it to
 * answer from memory. A session begins when a new connection to Redis is subscribed to invalidations, and ends with
 * that connection. While it lives, heartbeats register it and renew a lease; as long as the lease runs, no revocation
 * is answered that this node has not heard of. Loop thread only. */
#pragma once
#include "core/key.h"
#include "store/store.h"

struct node_session;

/* Both are told to whoever remembers keys. */
struct node_session_events {
    /* A key was revoked: nothing may be remembered of it when this returns, for then it is acknowledged. */
    void (*invalidated)(void *arg, const uint8_t digest[KEY_DIGEST_BYTES]);
    /* The session is over: nothing may be remembered of any key when this returns. */
    void (*ended)(void *arg);
};

/* One a store; from now on this store's revocations are acknowledged to it. Connects at once, on a connection of its
 * own. lease_ms: 0 to LEASE_MS_MAX; 0: no heartbeats and never a lease, but revocations are still told of. */
struct node_session *node_session_create(struct store *store, const struct redis_target *target, uint32_t lease_ms);
/* Before the loop runs. */
void node_session_listen(struct node_session *session, const struct node_session_events *events, void *arg);
/* Gives the lease up for good, then takes the session out of the registry, so that nobody waits for it.
 * Acknowledgements still arrive. */
void node_session_leave(struct node_session *session);
/* Before store_close(). closed runs once, later: when the registry has told, or the store's timeout has passed. */
void node_session_close(struct node_session *session, void (*closed)(void *arg), void *arg);

/* Whether what is remembered may be used now. The clock (clock_boot_ns(), also told) is read by this call, so call it
 * after the request's bytes came (rule 4). */
MUST_CHECK bool node_session_has_lease(const struct node_session *session, uint64_t *ret_now_ns);
/* Whether what was just read from Redis decides anything (rule 10). Where Sentinel decides which Redis is the master, a
 * running lease alone says that the one that answered still is: one that was replaced stops to take heartbeats, but
 * not to answer reads. Elsewhere always true. */
MUST_CHECK bool node_session_may_decide(const struct node_session *session);
/* To be noted when a read is sent; what it brings may be remembered only if node_session_may_fill() still holds for it
 * when it is answered (rule 3). */
uint64_t node_session_epoch(const struct node_session *session);
bool node_session_may_fill(const struct node_session *session, uint64_t epoch);
/* False: this node never remembers anything (lease_ms 0). */
bool node_session_may_cache(const struct node_session *session);
