/* Deadlines on the monotonic clock. */
#pragma once
#include <stdint.h>

/* How long a test waits for something that must happen, and how many seconds a whole test may take. Both are far longer
 * than needed, so that only a fault ends a test, even on a busy machine. */
enum { PATIENCE_MS = 90000, TEST_WITHIN_S = 400 };

struct deadline {
    int64_t at_ms;
};

struct deadline deadline_in(int64_t ms);
/* Milliseconds left, never below 0, as poll() wants them. */
int deadline_left_ms(struct deadline deadline);
/* The monotonic clock in milliseconds, for measuring how long something took. */
int64_t deadline_now_ms(void);
