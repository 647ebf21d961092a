#include "base/turn_clock.h"
#include "base/clock.h"
#include "base/histogram.h"

static uint64_t began_ns; /* 0: the loop waits */
static uint64_t now_ns;

uint64_t turn_clock_ns(void)
{
    if (began_ns == 0)
        began_ns = now_ns = clock_boot_ns();
    return now_ns;
}

void turn_clock_advance(void)
{
    now_ns = clock_boot_ns();
    if (began_ns == 0)
        began_ns = now_ns;
}

void turn_clock_end(void)
{
    if (began_ns > 0)
        histogram_observe(HISTOGRAM_LOOP_LAG, clock_boot_ns() - began_ns);
    began_ns = 0;
}
