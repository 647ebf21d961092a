/* Points in time by which something must have happened, on the monotonic clock. */
#pragma once
#include <stdint.h>

/* How long a test waits for what must happen, and how many seconds it may take as a whole: far longer than either
 * takes, so that on a busy machine only a fault ends it. */
enum { PATIENCE_MS = 90000, TEST_WITHIN_S = 400 };

struct deadline {
    int64_t at_ms;
};

struct deadline deadline_in(int64_t ms);
/* Milliseconds left, never below 0: fits poll(). */
int deadline_left_ms(struct deadline deadline);
/* Milliseconds of the monotonic clock, for measuring how long something took. */
int64_t deadline_now_ms(void);
