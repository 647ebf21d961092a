/* An examination of Redis, for 'doctor' and 'status'. */
#pragma once
#include "admin/store_client.h"

/* Tries for a moment, because Redis may just be starting. False: it cannot be reached, or holds nothing for us;
 * store_trouble() says why. */
MUST_CHECK bool redis_examine(struct store_client *client, struct store_facts *ret_facts);
