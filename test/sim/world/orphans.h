/* Keys that nobody got: a node that answered 503 to whoever asked for a key, and lives on, sees to it that there is
 * none. */
#pragma once
#include "deployment.h"

void sim_orphans_begin(void);
/* The request of that number, for a key, was answered 503. */
void sim_orphans_note(const struct sim_node *node, uint64_t number);
/* Once nothing is under way. */
void sim_orphans_judge(struct sim_deployment *deployment, struct sim_node *node);
