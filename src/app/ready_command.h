/* The health check of containers, built in so that the image needs no other program. */
#pragma once
#include "admin/command.h"

extern const struct option_group READY_OPTIONS[];

/* Requests /readyz from the internal listener of this machine's node. Returns EXIT_DONE if the node is ready. Otherwise
 * prints one line to standard error: the answer, or why there was none. Each step takes at most 2 s. */
int ready_run(const struct command_line *line);
