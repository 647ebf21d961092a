/* Clocks. */
#include "base/check.h"
#include "kernel_internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <sys/time.h>
#include <time.h>

enum { NS_PER_S = 1000 * 1000 * 1000, NS_PER_US = 1000, NS_PER_MS = 1000 * 1000, READING_NS = 100, PPM = 1000 * 1000 };

const struct sim_world *sim_world;

static _Thread_local bool is_inside;
static _Thread_local uint64_t spent_ns; /* since it entered */

void *sim_system_named(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    CHECK(function);
    return function;
}

bool sim_is_inside(void)
{
    return is_inside;
}

bool sim_has_others(void)
{
    return sim_world && sim_world->current();
}

void sim_let_others(void)
{
    CHECK(sim_has_others());
    sim_world->wait(sim_now_ns() + NS_PER_MS);
}

static uint64_t to_ns(struct timespec time)
{
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Where the clocks of the system stood when the thread entered: they do not move meanwhile. */
static _Thread_local uint64_t began_boot_ns, began_monotonic_ns, began_real_ns;

static uint64_t system_ns(clockid_t id)
{
    struct timespec time;

    CHECK(SYSTEM(clock_gettime)(id, &time) == 0);
    return to_ns(time);
}

void sim_kernel_enter(void)
{
    if (is_inside)
        return;
    began_boot_ns = system_ns(CLOCK_BOOTTIME);
    began_monotonic_ns = system_ns(CLOCK_MONOTONIC);
    began_real_ns = system_ns(CLOCK_REALTIME);
    spent_ns = 0;
    is_inside = true;
}

void sim_kernel_enter_at(uint64_t monotonic_ns, uint64_t real_ns)
{
    began_boot_ns = began_monotonic_ns = monotonic_ns;
    began_real_ns = real_ns;
    spent_ns = 0;
    is_inside = true;
}

void sim_kernel_spend_ns(uint64_t ns)
{
    CHECK(is_inside);
    spent_ns += ns;
}

uint64_t sim_spent_ns(void)
{
    return spent_ns;
}

uint64_t sim_now_ns(void)
{
    return began_monotonic_ns + spent_ns;
}

struct timespec sim_real_time(void)
{
    return to_timespec(began_real_ns + spent_ns);
}

/* A host's clocks may go at a pace of their own, and its calendar may be wrong. */
static uint64_t host_ns(const struct sim_clock *clock, uint64_t since_ns)
{
    return clock ? since_ns + (uint64_t)((__int128)(int64_t)since_ns * clock->pace_ppm / PPM) + (uint64_t)clock->lead_ns
                 : since_ns;
}

uint64_t sim_wait_ns(uint64_t ns)
{
    const struct sim_clock *clock = sim_world ? sim_world->clock() : NULL;

    return clock ? (uint64_t)((__int128)ns * PPM / (PPM + clock->pace_ppm)) : ns;
}

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
    if (!is_inside)
        return SYSTEM(clock_gettime)(id, ret_time);
    const struct sim_clock *clock = sim_world ? sim_world->clock() : NULL;

    spent_ns += READING_NS;
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        *ret_time = to_timespec(began_monotonic_ns + host_ns(clock, spent_ns));
        return 0;
    case CLOCK_BOOTTIME:
        *ret_time = to_timespec(began_boot_ns + host_ns(clock, spent_ns));
        return 0;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        *ret_time = to_timespec(began_real_ns + host_ns(clock, spent_ns) + (uint64_t)(clock ? clock->off_ns : 0));
        return 0;
    default: /* CPU time */
        if (sim_world) {
            *ret_time = to_timespec(spent_ns);
            return 0;
        }
        return SYSTEM(clock_gettime)(id, ret_time);
    }
}

time_t time(time_t *ret_time)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / NS_PER_US};
    return 0;
}
