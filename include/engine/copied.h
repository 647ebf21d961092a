/* The inside of a store, for copying it (copy/store_copy.h). */
#pragma once
#include "base/text.h"

enum { STORE_SCHEMA = 2 }; /* the newest layout in Redis that we know; when to raise it: ARCHITECTURE.md#the-schema */

/* The bodies of two scripts, for EVAL (src/engine/lua/store_leave.lua, store_return.lua say with which arguments): they
 * mark a store as one that has moved to another place, and make it a store again. */
struct text store_leave_script(void);
struct text store_return_script(void);
