/* A wall clock that a test sets, for programs that it starts: they preload shifted_clock.c, which reads the file. */
#pragma once
#include "process.h"
#include <stdint.h>

struct clock_file {
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];
};

/* Makes the file, in a new folder: the clock is that many seconds ahead of this machine's. */
void clock_file_make(struct clock_file *clock, int seconds);
/* At once: programs see what was there before or what is there now, never an empty file, which would be the true time.
 */
void clock_file_set(const struct clock_file *clock, int seconds);
/* The same, but the clock stands still at that time since 1970. */
void clock_file_stop(const struct clock_file *clock, uint64_t unix_us);
/* What is started until clock_file_end() goes by it; its other clocks run at that many percent of their speed (NULL:
 * at 100). */
void clock_file_begin(const struct clock_file *clock, const char *rate);
void clock_file_end(void);
void clock_file_remove(const struct clock_file *clock);
