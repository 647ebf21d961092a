/* Lowers the longest lease, lease_max, for which revocations wait (rule 7), for an operator whose nodes have shorter
 * ones now. Too low, it would let revoked keys be accepted. So members with a longer lease are marked, and W passes by
 * the one before: whoever still has the mark has had no heartbeat since, and no lease that one before has granted is
 * valid any more, at this Redis or at one before it (rule 10). A member without its mark lives, and nothing is lowered.
 * A heartbeat raises lease_max in the step that registers it, so one that comes later is waited for. */
#pragma once
#include "base/attr.h"
#include <stdint.h>

struct lease;

enum lease_lowered {
    LEASE_LOWER_FAILED, /* Redis did not answer in time, or the connection was lost: perhaps lowered, which is safe */
    LEASE_LOWER_MALFORMED, /* not lowered: Redis holds a longest lease, or members, that cannot be */
    LEASE_LOWER_IN_USE,    /* not lowered: members with a longer lease live, or others wait for such members just now */
    LEASE_NOT_LONGER,      /* not lowered: it was no longer than that, or somebody else has lowered it meanwhile */
    LEASE_LOWERED,
};

struct lease_lowering {
    int64_t longest_ms; /* before it was lowered, if it was; LEASE_LOWER_MALFORMED: -1, unless members are at fault */
    int64_t
        living; /* with LEASE_LOWER_IN_USE: members with a longer lease; 0: others wait for them, or a node raised it */
    int64_t living_ms; /* the longest of theirs */
};

/* Waits as a revocation does that nobody acknowledges, so that no longer lease is valid, then lowers the longest one to
 * lease_ms (0 to LEASE_MS_MAX). done runs once, later; found is valid during the call. Writes event store.lease_lowered
 * of the whole store, if it lowers. */
void lease_lower(struct lease *lease, int64_t lease_ms,
                 void (*done)(void *arg, enum lease_lowered result, const struct lease_lowering *found), void *arg);
