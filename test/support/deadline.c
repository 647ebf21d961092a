#include "deadline.h"

#include <limits.h>
#include <time.h>

int64_t deadline_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct deadline deadline_in(int64_t ms)
{
    return (struct deadline){deadline_now_ms() + ms};
}

int deadline_left_ms(struct deadline deadline)
{
    int64_t left = deadline.at_ms - deadline_now_ms();

    if (left < 0)
        return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}
