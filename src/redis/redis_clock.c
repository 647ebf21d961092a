#include "redis/redis_clock.h"

#include "base/clock.h"

#include <stdlib.h>

/* What NTP slews between two answers is less, and scripts accept ten times that (node_time() in the prelude). */
enum { CLOCK_SET_MS = 1000 };

static int64_t ms_of(uint64_t boot_ns)
{
    return (int64_t)(boot_ns / CLOCK_NS_PER_MS);
}

static bool was_set_since(int64_t zero_ms)
{
    return llabs(clock_zero_ms() - zero_ms) > CLOCK_SET_MS;
}

struct redis_clock_question redis_clock_question(void)
{
    return (struct redis_clock_question){clock_boot_ns(), clock_zero_ms()};
}

/* What was known stays if the answer allows it: one that took long says less. */
void redis_clock_told(struct redis_clock *clock, const struct redis_clock_question *question, int64_t ms)
{
    int64_t least_ms = ms - ms_of(clock_boot_ns()), most_ms = ms - ms_of(question->sent_ns) + 1;

    if (!clock->is_told || clock->offset_ms < least_ms || clock->offset_ms > most_ms)
        clock->offset_ms = least_ms + (most_ms - least_ms) / 2;
    clock->is_told = true;
    /* Set meanwhile: the answer may be of before. */
    clock->zero_ms = was_set_since(question->zero_ms) ? question->zero_ms : clock_zero_ms();
}

bool redis_clock_is_known(const struct redis_clock *clock)
{
    return clock->is_told && !was_set_since(clock->zero_ms);
}

int64_t redis_clock_ms(const struct redis_clock *clock)
{
    return clock->offset_ms + ms_of(clock_boot_ns());
}

bool redis_clock_ahead(const struct redis_clock *clock, int64_t *ret_ms)
{
    if (!redis_clock_is_known(clock))
        return false;
    *ret_ms = clock->offset_ms - clock_zero_ms();
    return true;
}
