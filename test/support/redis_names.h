/* Whether what lies in a Redis is what src/engine/README.md says of each name: that it is known, and whether it has a
 * time to live. */
#pragma once
#include "redis_server.h"

/* Aborts the test with the name and what is wrong with it. prefix: of the names that are looked at, such as
 * "chatelaine:"; behind it may be a partition, "{3}:". Does nothing if Redis cannot be reached. Of several primaries,
 * looks at all. */
void redis_names_judge(const struct redis_server *server, const char *prefix);
