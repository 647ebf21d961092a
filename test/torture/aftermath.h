/* What must still be there when all faults are over: every acknowledged key, revocation, session and audit event; and
 * no active key whose secret nobody has. Violations go to the history. */
#pragma once
#include "clients.h"

struct aftermath {
    int64_t back_ms; /* until the slowest node served again */
    unsigned sessions;
    size_t active, orphans_excused; /* listed as active; of those: of a node that was ended while it made them */
    size_t audit_pages;
    long refreshes; /* of cached keys, by the nodes that are left */
};

void aftermath_check(struct cluster *cluster, struct history *history, const struct clients *clients,
                     const struct fixture_user *users, unsigned user_count, struct aftermath *ret_aftermath);
