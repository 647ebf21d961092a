/* For the test of scripts/check-layers: a room that uses what is the engine's own. */
#include "engine/verb.h"
#include "trail/audit_search.h"
