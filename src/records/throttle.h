/* The counters of an attempt that lie each in the partition of its tag (struct login_attempt). A step acts on the
 * counters of one partition in one script, and on one partition after another. With one partition that is one call. */
#pragma once
#include "engine/partitions.h"
#include "records/session_store.h"

/* Counters that strangers write, of each kind (STRANGERS in the prelude): beyond it the network that has written the
 * most loses its oldest. */
enum { THROTTLES_MAX = 32768 };

enum throttle_step {
    THROTTLE_RESERVE, /* at all counters, or at none */
    THROTTLE_CHECK,   /* changes no counter; fails where THROTTLE_FAIL could not count */
    THROTTLE_FAIL,    /* counts, and ends the reservation */
};

struct throttle_verdict {
    uint32_t retry_after_s; /* with STORE_REFUSED */
    bool closes;            /* THROTTLE_FAIL: this failure closed sign-in to unknown browsers */
};
/* STORE_REFUSED: a counter has reached its limit, or THROTTLE_RESERVE found too many attempts under way. Unless
 * THROTTLE_RESERVE ends with STORE_OK, nothing stays reserved. THROTTLE_FAIL may have counted at some counters. */
typedef void throttle_done(void *arg, enum store_result result, const struct throttle_verdict *verdict);

/* The attempt is copied, but its texts must live until done, which runs once; inside this call if the attempt has no
 * such counters. */
void throttle_judge(const struct partitions *partitions, const struct login_attempt *attempt, enum throttle_step step,
                    throttle_done *done, void *arg);
/* The same for requests that count against an address and are not reserved: wrong codes of links, and what devices do.
 * ip_tag, a keyed digest in hex, is copied. */
void throttle_judge_address(const struct partitions *partitions, struct text ip_tag, enum throttle_step step,
                            throttle_done *done, void *arg);
/* The attempt was right: releases it and clears what is forgiven. Fire and forget: a lost call leaves a reservation for
 * a minute, and the counters for their time. */
void throttle_succeed(const struct partitions *partitions, const struct login_attempt *attempt);
/* Releases an attempt, wherever its counters lie. Likewise. */
void throttle_give_back(const struct partitions *partitions, const struct login_attempt *attempt);

/* The counters that a script in attempt->home judges itself; the steps above leave them alone. */
struct text throttle_counters_at_home(const struct login_attempt *attempt);
