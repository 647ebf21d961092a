/* An account that is suspended and resumed by commands, while a key of it is checked at every node. */
#pragma once
#include "deployment.h"

struct sim_verdict;

/* Of its keys. */
const struct sim_verdict *sim_suspension_verdict(void);
/* One of them, drawn. */
const char *sim_suspension_secret(void);
void sim_suspension_start(struct sim_deployment *deployment);
