/* What goes wrong with a master, its replicas and its Sentinels (--store sentinel). */
#pragma once
#include "faults_internal.h"

const struct sim_fault *sim_failovers(size_t *ret_count);

void sim_failovers_start(struct sim_deployment *deployment);
