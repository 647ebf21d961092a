/* Which faults happen, and when: chosen by numbers of their own, so that a run without some of them has the others, at
 * the same times. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { SIM_FAULTS_MAX = 1 << 16 };

/* Those that do not happen: numbers and ranges, as "3,7-9". Before sim_plan_begin(). False: that is no such list. */
bool sim_plan_leave_out(const char *list);
void sim_plan_begin(uint64_t seed);
uint64_t sim_plan_draw_below(uint64_t bound);
uint64_t sim_plan_draw_between(uint64_t least, uint64_t most);
/* A fault begins. Returns its number, from 1. */
unsigned sim_plan_next(void);
bool sim_plan_happens(unsigned fault);
/* For the fault that begins now: how strong it is. */
uint64_t sim_plan_draw_strength(uint64_t least, uint64_t most);
/* Of faults that have begun, or would have. */
unsigned sim_plan_count(void);
