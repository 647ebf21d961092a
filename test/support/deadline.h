/* Points in time by which something must have happened, on the monotonic clock. */
#pragma once
#include <stdint.h>

struct deadline {
    int64_t at_ms;
};

struct deadline deadline_in(int64_t ms);
/* Milliseconds left, never below 0: fits poll(). */
int deadline_left_ms(struct deadline deadline);
/* Milliseconds of the monotonic clock, for measuring how long something took. */
int64_t deadline_now_ms(void);
