/* People sign in, look at their sessions, and sign out. */
#pragma once
#include "deployment.h"

void sim_people_start(struct sim_deployment *deployment);
/* Redis has just gone back to where it was then: sessions that began since may be gone. */
void sim_people_lost(uint64_t from_ns);
