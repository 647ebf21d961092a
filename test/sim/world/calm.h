/* Once faults have stopped: everything is answered, a node that is stopped ends, and what was used is counted. */
#pragma once
#include "deployment.h"

/* stops_at_first: it returns at the first violation. */
void sim_calm_run(struct sim_deployment *deployment, bool stops_at_first);
