/* Gives the leases access to the store's connections and scripts. */
#pragma once
#include "engine/types.h"

struct lease;

/* Call after the links are created. */
struct lease *lease_host_create(struct store *store);
