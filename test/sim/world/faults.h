/* What goes wrong, by lots: one fault after another, each ending before the next begins. */
#pragma once
#include "deployment.h"

void sim_faults_start(struct sim_deployment *deployment, uint64_t seed);
/* Whether the node has run since a while before that time, and could be reached by clients. */
bool sim_faults_spared(const struct sim_node *node, uint64_t since_ns);
/* Ends the fault that lasts, and all that faults have left. */
void sim_faults_stop(void);
