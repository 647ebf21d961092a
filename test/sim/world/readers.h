/* Two programs beside each node (reader.c) that check keys by its shared table, on the node's host and by its clock;
 * and what they accept, against the promise. What a table does not accept is no verdict. */
#pragma once
#include "deployment.h"

void sim_readers_start(struct sim_deployment *deployment, const char *image);
/* From now on they are killed and paused, too; from now on no more. */
void sim_readers_trouble(bool is_on);
/* Their machine is off, or on again. */
void sim_readers_power(const struct sim_node *node, bool is_on);
