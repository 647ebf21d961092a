/* Clients: keys that are made, checked at every node, and revoked; judged by judge.h. */
#pragma once
#include "deployment.h"

/* From now on. checks_per_s: at each node. The deployment stays the caller's. */
void sim_load_start(struct sim_deployment *deployment, unsigned checks_per_s);
/* Redis has just gone back to where it was then: keys that were made since may be gone. */
void sim_load_lost(uint64_t from_ns);
