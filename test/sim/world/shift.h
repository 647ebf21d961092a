/* Clocks that a test sets (support/clock_file.h), without a host. */
#pragma once
#include "kernel_internal.h"

struct sim_shift {
    char *path; /* of the file with the seconds that the calendar is ahead; NULL: none */
    struct sim_clock clock;
};

/* As SHIFTED_CLOCK and SHIFTED_CLOCK_RATE of that environment say. */
void sim_shift_init(struct sim_shift *shift, char *const *environment);
void sim_shift_finish(struct sim_shift *shift);
/* As the file says now. NULL: the clock is right. */
const struct sim_clock *sim_shift_clock(struct sim_shift *shift);
