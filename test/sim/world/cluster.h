/* A Redis Cluster as the store: primaries on hosts of their own, without replicas; what goes wrong with them; and
 * slots that move from one to another, as docker/redis/move-slot does it, while all of this goes on. */
#pragma once
#include "faults_internal.h"

enum { SIM_PARTITIONS = 4 };

/* For --redis. */
#define SIM_CLUSTER_URL "redis-cluster://10.0.0.100:6379,10.0.0.101:6379,10.0.0.102:6379"

/* Their hosts; count: of them. */
struct sim_host *const *sim_cluster_hosts(struct sim_deployment *deployment, unsigned *ret_count);
/* They serve soon. */
void sim_cluster_start(struct sim_deployment *deployment);
/* What goes wrong there, beside what goes wrong with nodes. */
const struct sim_fault *sim_cluster_faults(size_t *ret_count);
/* Before any fault. */
void sim_cluster_faults_begin(struct sim_deployment *deployment);
/* Each primary serves, and no slot is on its way. */
bool sim_cluster_is_whole(struct sim_deployment *deployment);
