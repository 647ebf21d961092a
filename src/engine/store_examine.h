/* Examines Redis: on each connection, then every few seconds. In between, what can be changed while Redis runs is
 * looked at every second. */
#pragma once
#include "engine/facts.h"
#include "engine/types.h"

void examination_init(struct store *store);
/* Does nothing if an examination is running. The `changes` link must be up. */
void examination_start(struct store *store);
/* Ends every waiting store_examine() with STORE_UNAVAILABLE. Part of store_close(), after the links have failed their
 * calls. */
void examination_give_up(struct store *store);
