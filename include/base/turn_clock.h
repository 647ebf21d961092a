/* The time for measuring durations where reading a clock each time would cost too much: CLOCK_BOOTTIME as of the
 * present turn of the loop, or of its last slice (base/turn.h). At most the work of one slice old, some 10 µs; so never
 * for leases. Without a struct turn on the loop it stands still. Loop thread only. */
#pragma once
#include <stdint.h>

/* Reads the clock only if nobody has since the loop last waited. */
uint64_t turn_clock_ns(void);
/* A slice begins: reads the clock. */
void turn_clock_advance(void);
/* The loop is about to wait: notes how long this turn took. */
void turn_clock_end(void);
