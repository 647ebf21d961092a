/* What leases get of the store: its connections, and its scripts. */
#pragma once
#include "store/types.h"

struct lease;

/* Once the links are there. */
struct lease *lease_host_create(struct store *store);
