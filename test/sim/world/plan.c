#include "plan.h"
#include "base/check.h"
#include "schedule.h"
#include <ctype.h>
#include <stdlib.h>

#define FAULTS_SEED UINT64_C(0x6661756c7473)

static bool is_left_out[SIM_FAULTS_MAX];
static uint64_t choices, strength;
static unsigned count;

/* False: there is none, or it is too high. */
static bool read_number(const char **at, unsigned long *ret_number)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    *ret_number = strtoul(*at, &end, 10);
    *at = end;
    return *ret_number < SIM_FAULTS_MAX;
}

bool sim_plan_leave_out(const char *list)
{
    unsigned long from, to;

    while (read_number(&list, &from)) {
        to = from;
        if (*list == '-') {
            list++;
            if (!read_number(&list, &to))
                return false;
        }
        for (unsigned long i = from; i <= to; i++)
            is_left_out[i] = true;
        if (!*list)
            return true;
        if (*list++ != ',')
            return false;
    }
    return false;
}

void sim_plan_begin(uint64_t seed)
{
    choices = seed ^ FAULTS_SEED;
    count = 0;
}

uint64_t sim_plan_draw_below(uint64_t bound)
{
    CHECK(bound > 0);
    return sim_draw_from(&choices) % bound;
}

uint64_t sim_plan_draw_between(uint64_t least, uint64_t most)
{
    CHECK(least <= most);
    return least + sim_plan_draw_below(most - least + 1);
}

unsigned sim_plan_next(void)
{
    strength = sim_draw_from(&choices);
    CHECK(++count < SIM_FAULTS_MAX);
    return count;
}

bool sim_plan_happens(unsigned fault)
{
    return !is_left_out[fault];
}

uint64_t sim_plan_draw_strength(uint64_t least, uint64_t most)
{
    CHECK(least <= most);
    return least + sim_draw_from(&strength) % (most - least + 1);
}

unsigned sim_plan_count(void)
{
    return count;
}
