/* What an attempt to sign in, or to step up, is counted by. Lives in the request's arena. */
#pragma once
#include "exchange_internal.h"

enum {
    ATTEMPT_COUNTERS_MAX = 4,
    ATTEMPT_COUNTER_BYTES = 10 + THROTTLE_TAG_CHARS, /* "<rule>:<tag>," */
};

struct attempt_counters {
    size_t len;
    char text[ATTEMPT_COUNTERS_MAX * ATTEMPT_COUNTER_BYTES];
    uint64_t source; /* names the last counter for password_verify(): whose turn it is */
};

/* rule: of those in prelude.lua. value: what is counted; `of` tells the same value of two things apart, and may be
 * empty. */
void attempt_count(struct attempt_counters *counters, struct keyring *keyring, struct text rule, struct text value,
                   struct text of);
struct text attempt_counters_text(const struct attempt_counters *counters);
