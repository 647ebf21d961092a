/* The trail is whole: of each key that was made there is one event, and one of its end. */
#pragma once
#include "deployment.h"

/* What the trail must have of one key. Lives until the end. */
struct sim_trail;

void sim_trail_begin(void);
/* may_be_lost: Redis went back meanwhile. */
struct sim_trail *sim_trail_of(const char *id, const char *name, uint64_t made_ns, bool may_be_lost);
/* Redis went back to where it was then. */
void sim_trail_lost(uint64_t from_ns);
/* Its end was answered. */
void sim_trail_ended(struct sim_trail *trail);
/* Once nothing is under way, and what was to end has ended. */
void sim_trail_judge(struct sim_deployment *deployment, struct sim_node *node);
