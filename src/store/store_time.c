#include "store_time.h"
#include "base/clock.h"

/* Elapsed time by a clock that runs 10 % fast, and by one that runs 10 % slow. */
enum { FAST_OVER = 11, FAST_UNDER = 10, SLOW_OVER = 9, SLOW_UNDER = 10 };
/* The store's time may be this much later than it can be before a node's cache is in doubt. KEY_ENDS_SOON_MS
 * has room for it. */
enum { JUMP_MS = 1000 };

int64_t store_time_least(const struct store_time *time, uint64_t now_ns)
{
    if (time->told_ms == 0)
        return 0;
    return time->told_ms + (int64_t)((now_ns - time->read_ns) / CLOCK_NS_PER_MS * FAST_UNDER / FAST_OVER);
}

int64_t store_time_most(const struct store_time *time, uint64_t now_ns)
{
    if (time->told_ms == 0)
        return 0;
    return time->told_ms + (int64_t)((now_ns - time->sent_ns) / CLOCK_NS_PER_MS * SLOW_UNDER / SLOW_OVER) + 1;
}

bool store_time_told(struct store_time *time, int64_t told_ms, uint64_t sent_ns, uint64_t read_ns)
{
    bool has_jumped = time->told_ms > 0 && told_ms > store_time_most(time, read_ns) + JUMP_MS;

    if (told_ms > 0)
        *time = (struct store_time){told_ms, sent_ns, read_ns};
    return has_jumped;
}
