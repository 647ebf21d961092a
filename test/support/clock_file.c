#include "clock_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const struct clock_file *clock, const char *text)
{
    char next[sizeof clock->path + 8];

    snprintf(next, sizeof next, "%s.next", clock->path);
    file_write(next, text);
    if (rename(next, clock->path) != 0)
        test_give_up("rename %s: %s", next, strerror(errno));
}

void clock_file_set(const struct clock_file *clock, int seconds)
{
    char text[16];

    snprintf(text, sizeof text, "%d\n", seconds);
    put(clock, text);
}

void clock_file_stop(const struct clock_file *clock, uint64_t unix_us)
{
    char text[24];

    snprintf(text, sizeof text, "=%" PRIu64, unix_us);
    put(clock, text);
}

void clock_file_make(struct clock_file *clock, int seconds)
{
    folder_make(clock->folder);
    snprintf(clock->path, sizeof clock->path, "%s/clock", clock->folder);
    clock_file_set(clock, seconds);
}

void clock_file_begin(const struct clock_file *clock, const char *rate)
{
    setenv("SHIFTED_CLOCK", clock->path, 1);
    if (rate)
        setenv("SHIFTED_CLOCK_RATE", rate, 1);
    setenv("LD_PRELOAD", SHIFTED_CLOCK_LIBRARY, 1);
}

void clock_file_end(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("SHIFTED_CLOCK_RATE");
    unsetenv("SHIFTED_CLOCK");
}

void clock_file_remove(const struct clock_file *clock)
{
    folder_remove(clock->folder);
}
