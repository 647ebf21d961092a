/* The counters that limit attempts to sign in or step up. Lives in the request's arena. */
#pragma once
#include "exchange_internal.h"

enum {
    ATTEMPT_COUNTERS_MAX = 4,
    ATTEMPT_COUNTER_BYTES = 10 + THROTTLE_TAG_CHARS, /* "<rule>:<tag>," */
};

struct attempt_counters {
    size_t len;
    char text[ATTEMPT_COUNTERS_MAX * ATTEMPT_COUNTER_BYTES];
    uint64_t source; /* identifies the last counter to password_verify(), which takes turns between sources */
};

/* Adds a counter. rule: a name from the prelude. value: what is counted. of: keeps equal values in different contexts
 * apart; may be empty. */
void attempt_count(struct attempt_counters *counters, struct keyring *keyring, struct text rule, struct text value,
                   struct text of);
struct text attempt_counters_text(const struct attempt_counters *counters);
