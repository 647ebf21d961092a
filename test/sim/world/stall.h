/* Connections between a node and Redis that lag, each by a time of its own that changes, as where pieces are lost and
 * sent again: what one says is heard long before what another one has said. Now and then one of them breaks, or
 * somebody cuts the stream of endings, so that a node that comes back does not find where it was. */
#pragma once
#include "deployment.h"

void sim_stall_start(struct sim_deployment *deployment, struct sim_node *node);
void sim_stall_stop(struct sim_node *node);
