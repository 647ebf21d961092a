/* An account that is suspended and resumed by commands, while a key of it is checked at every node. */
#pragma once
#include "deployment.h"

void sim_suspension_start(struct sim_deployment *deployment);
