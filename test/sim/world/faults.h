/* What goes wrong, by lots: one fault after another, each ending before the next begins. */
#pragma once
#include "deployment.h"

void sim_faults_start(struct sim_deployment *deployment, uint64_t seed);
/* Ends the fault that lasts, and all that faults have left. */
void sim_faults_stop(void);
