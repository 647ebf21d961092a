/* A node's membership in the deployment (rules 1, 2, 6 and 9): what allows it to answer from memory. A membership
 * begins when a new connection to Redis is subscribed to invalidations, and ends with that connection. While it lives,
 * heartbeats register it and renew a lease; as long as the lease runs, no revocation is answered that this node has not
 * heard of. Loop thread only. */
#pragma once
#include "core/key.h"
#include "lease/barrier.h"

struct membership;

/* Both are told to whoever remembers keys. */
struct membership_events {
    /* A key was revoked: nothing may be remembered of it when this returns, for then it is acknowledged. */
    void (*on_invalidated)(void *arg, const uint8_t digest[KEY_DIGEST_BYTES]);
    /* The membership is over: nothing may be remembered of any key when this returns. */
    void (*on_ended)(void *arg);
};

/* As lease_join() has it. on_left runs inside membership_close(). */
struct membership *membership_create(const struct lease_settings *settings, struct barriers *barriers,
                                     const struct redis_target *target, uint32_t lease_ms, void (*on_left)(void *arg),
                                     void *arg);
/* Before the loop runs. */
void membership_listen(struct membership *member, const struct membership_events *events, void *arg);
/* Gives the lease up for good, then takes the node out of the registry, so that nobody waits for it. Acknowledgements
 * still arrive. */
void membership_leave(struct membership *member);
/* Before the store is closed. closed runs once, later: when the registry has told, or the timeout has passed. */
void membership_close(struct membership *member, void (*closed)(void *arg), void *arg);

/* Whether what is remembered may be used now. The clock (clock_boot_ns(), also told) is read by this call, so call it
 * after the request's bytes came (rule 4). */
MUST_CHECK bool membership_has_lease(const struct membership *member, uint64_t *ret_now_ns);
/* Whether what was just read from Redis decides anything (rule 10). Where Sentinel decides which Redis is the master, a
 * running lease alone says that the one that answered still is: one that was replaced stops to take heartbeats, but
 * not to answer reads. Elsewhere always true. */
MUST_CHECK bool membership_may_decide(const struct membership *member);
/* To be noted when a read is sent; what it brings may be remembered only if membership_may_fill() still holds for it
 * when it is answered (rule 3). */
uint64_t membership_epoch(const struct membership *member);
bool membership_may_fill(const struct membership *member, uint64_t epoch);
/* False: this node never remembers anything (lease_ms 0). */
bool membership_may_cache(const struct membership *member);
uint32_t membership_lease_ms(const struct membership *member);
/* Why the newest heartbeat granted nothing, or has granted nothing yet, as a sentence. */
const char *membership_trouble(const struct membership *member);
