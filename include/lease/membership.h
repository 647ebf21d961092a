/* A node's membership in the deployment (rules 1, 2, 6 and 9): its right to answer from memory. A membership begins
 * when a new connection to Redis has subscribed to invalidations and what was missed before is known, and ends with
 * that connection. Heartbeats register it and renew its lease. While the lease is valid, this node has seen every
 * answered revocation. Loop thread only. */
#pragma once
#include "core/key.h"
#include "lease/barrier.h"
#include "lease/identity.h"
#include "lease/suspensions.h"

struct membership;

/* For the owner of the cache. */
struct membership_events {
    /* A key was revoked, now or while there was no membership. Drop it before returning, because the acknowledgement
     * follows at once. */
    void (*on_invalidated)(void *arg, const uint8_t digest[KEY_DIGEST_BYTES]);
    /* The membership has ended, and what was revoked since cannot be known. Empty the cache before returning. */
    void (*on_ended)(void *arg);
    /* The lease was renewed, or given up before its end: see membership_lease_until_ns(). May be NULL. */
    void (*on_lease)(void *arg);
    /* That account was suspended or resumed. The acknowledgement follows at once. May be NULL. */
    void (*on_account)(void *arg, const struct id *account);
};

/* For whoever passes invalidations on (auth/watch_feed.h). */
struct membership_watch {
    /* An invalidation was heard: it is in the log of invalidations. Or a membership began, before which some were
     * perhaps not heard. */
    void (*heard)(void *arg);
    /* A barrier came with it. True: not to acknowledge now; membership_acknowledge() does later, or never. */
    bool (*defers)(void *arg, const struct due_acknowledgement *due);
};

/* The parts that a membership works with: of the same lease_settings, and they outlive it. */
struct membership_parts {
    struct barriers *barriers; /* receive acknowledgements, and know where to send ours */
    struct suspensions *suspensions;
    struct identity *identity;
    struct kept *kept; /* keeps what is heard, before it is acknowledged */
};

/* As lease_join(). on_left runs inside membership_close(). */
struct membership *membership_create(const struct lease_settings *settings, const struct membership_parts *parts,
                                     const struct redis_target *target, uint32_t lease_ms, void (*on_left)(void *arg),
                                     void *arg);
/* Call before the loop runs. */
void membership_listen(struct membership *member, const struct membership_events *events, void *arg);
/* The cache is in doubt: it is emptied, and not used until the next heartbeat is echoed. why: for the log. */
void membership_forget(struct membership *member, const char *why);
/* Redis was examined and found fit: a heartbeat is sent now if the node has no lease and none is under way. */
void membership_hurry(struct membership *member);
/* NULL: nobody, from now on. */
void membership_set_watch(struct membership *member, const struct membership_watch *watch, void *arg);
/* Acknowledges a barrier; not if that membership has ended. */
void membership_acknowledge(struct membership *member, const struct due_acknowledgement *due);
/* Gives up the lease for good, then leaves the registry, so that no revoker waits for this node. Acknowledgements still
 * arrive. */
void membership_leave(struct membership *member);
/* Call before the store is closed. closed runs once, later: when pending heartbeats and the leave are answered or have
 * timed out. */
void membership_close(struct membership *member, void (*closed)(void *arg), void *arg);

/* Whether the cache may be used now. Reads clock_boot_ns() and returns it in ret_now_ns, so call it only after the
 * request's bytes arrived (rule 4). */
MUST_CHECK bool membership_has_lease(const struct membership *member, uint64_t *ret_now_ns);
/* Until when the lease is valid, by clock_boot_ns(), and for how long it still is; 0: there is none. */
uint64_t membership_lease_until_ns(const struct membership *member);
uint64_t membership_lease_left_ns(const struct membership *member);
/* Whether this node knows which accounts are suspended, without which the cache answers nothing; and whether this one
 * is. Like the lease, they decide checks that began before. */
MUST_CHECK bool membership_knows_suspended(const struct membership *member);
MUST_CHECK bool membership_suspends(const struct membership *member, const struct id *account);
/* Whether a reply just read from Redis may decide anything (rule 10). Where another Redis may take over, only a valid
 * lease proves that this one is still the master: a replaced one acknowledges no heartbeats but still answers reads.
 * Otherwise always true. */
MUST_CHECK bool membership_may_decide(const struct membership *member);
/* Take it when a read is sent. Its reply may enter the cache only if membership_may_fill() still accepts it when the
 * reply arrives (rule 3). */
uint64_t membership_epoch(const struct membership *member);
bool membership_may_fill(const struct membership *member, uint64_t epoch);
/* False: this node never caches (lease_ms 0). */
bool membership_may_cache(const struct membership *member);
uint32_t membership_lease_ms(const struct membership *member);
/* The name that the registry has for this node at present, or had last. */
const struct member_name *membership_name(const struct membership *member);
/* That name, and the one before if it may still be in the registry; empty: there is none. */
void membership_names(const struct membership *member, struct text ret_names[2]);
/* Why there is no lease, as a sentence. */
const char *membership_trouble(const struct membership *member);
