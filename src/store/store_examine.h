/* Looking at Redis: once a connection, then every few seconds. */
#pragma once
#include "store/facts.h"
#include "store/types.h"

void examination_init(struct store *store);
/* Does nothing while one runs. The link of changes must be up. */
void examination_start(struct store *store);
/* Everyone who waits is told STORE_UNAVAILABLE; on store_close(), after the links have failed their calls. */
void examination_give_up(struct store *store);
