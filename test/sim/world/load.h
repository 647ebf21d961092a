/* Clients: keys that are made, checked at every node, and revoked; judged by judge.h. */
#pragma once
#include "deployment.h"

/* From now on. checks_per_s: at each node. The deployment stays the caller's. */
void sim_load_start(struct sim_deployment *deployment, unsigned checks_per_s);
/* Nobody asks for anything any more; what is under way goes on. */
void sim_load_stop(void);
bool sim_load_is_stopped(void);
/* Redis has just gone back to where it was then: keys that were made since may be gone. */
void sim_load_lost(uint64_t from_ns);
/* Whether what was asked and answered then may be lost like that. */
bool sim_load_may_be_lost(uint64_t asked_ns, uint64_t answered_ns);
/* From now on, or not any more, nobody says ahead of time when a key is to end. False: somebody just does, so that
 * cannot be. */
bool sim_load_hold_schedules(bool holds);
