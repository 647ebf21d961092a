/* Makes a Redis Cluster of the servers of development mode. */
#pragma once
#include "dev_redis.h"

/* Gives the slots to the servers, introduces them to each other, and waits until they serve all slots. Does only what
 * earlier starts have not done. Returns EXIT_DONE, or EXIT_FAILED after printing why. */
MUST_CHECK int dev_cluster_form(struct dev_redis *redis);
