/* Moves slots of the cluster from one primary to another: the target is told, then the source; names are copied, some
 * at a time, and deleted at the source; then both are told of the new owner. Whatever fails is tried again. */
#pragma once
#include "deployment.h"

void sim_mover_begin(struct sim_deployment *deployment);
/* Moves one slot after another from now on. */
void sim_mover_start(void);
/* Ends what it has begun, at once if nothing stands in its way, and begins no more. */
void sim_mover_stop(void);
/* Begins none meanwhile. False: a slot is on its way, so it cannot be held. */
bool sim_mover_hold(void);
void sim_mover_release(void);
/* No slot is on its way. */
bool sim_mover_rests(void);
/* Who has the names of that account. */
struct sim_master *sim_mover_owner_of(const char *account);
