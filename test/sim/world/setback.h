/* Redis loses the last changes that it has answered: it becomes what it was at a copy. In some cases a node is ended
 * between the copy and the loss, and in half of them another one at the same time as Redis. So one lives all the while,
 * and has heard of what others answered. Nothing else may be wrong meanwhile. */
#pragma once
#include "deployment.h"

/* From beginning to end, with time for nodes to come to themselves before and after. */
#define SIM_SETBACK_NS (UINT64_C(9) * 1000 * 1000 * 1000)

/* has_keys: those that clients make are there. */
void sim_setback_start(struct sim_deployment *deployment, struct sim_server *server, bool has_keys);
/* Whatever it has come to. */
bool sim_setback_is_on(void);
void sim_setback_stop(void);
