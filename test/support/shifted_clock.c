/* Shifts the wall clock of a program that preloads it, by the seconds in the file that SHIFTED_CLOCK names; or stops it
 * at what the file says behind "=", in us since 1970. Its other clocks run at SHIFTED_CLOCK_RATE percent of their
 * speed, if that is set. Redis 8 does not start under libfaketime. Redis' allocator asks for the time before the C
 * library is set up, so only system calls are used. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define US_PER_S 1000000LL

static void change_wall(struct timespec *time)
{
    const char *path = environ ? getenv("SHIFTED_CLOCK") : NULL;
    char text[24] = {0};
    long file;

    if (!path || (file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)) < 0)
        return;
    (void)syscall(SYS_read, file, text, sizeof text - 1);
    (void)syscall(SYS_close, file);
    if (text[0] == '=') {
        long long us = strtoll(text + 1, NULL, 10);

        *time = (struct timespec){us / US_PER_S, us % US_PER_S * 1000};
    } else {
        time->tv_sec += strtol(text, NULL, 10);
    }
}

static bool has_rate(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
}

static void change_rate(struct timespec *time)
{
    const char *rate = environ ? getenv("SHIFTED_CLOCK_RATE") : NULL;
    long long ns = time->tv_sec * NS_PER_S + time->tv_nsec;

    if (!rate)
        return;
    ns = ns / 100 * strtol(rate, NULL, 10);
    *time = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret);

    if (result == 0 && clock == CLOCK_REALTIME)
        change_wall(ret);
    if (result == 0 && has_rate(clock))
        change_rate(ret);
    return result;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
