/* An examination of Redis, for 'doctor' and 'status'. */
#pragma once
#include "admin/store_client.h"

/* Tries for a moment, because Redis may just be starting. Examines the Redis of each partition; ret_facts is of the
 * first unfit one, or else of the first that can be reached. ret_well: how many are fit. False: none can be reached, or
 * they hold nothing for us; partitions_trouble() says why. */
MUST_CHECK bool redis_examine(struct store_client *client, struct store_facts *ret_facts, unsigned *ret_well);
